"""The long files that `make test` begins with are there."""

from tests.conftest import LONG_FILES
from tests.house.sources import ROOT


def test_the_long_files_exist():
    assert [name for name in LONG_FILES if not (ROOT / name).is_file()] == []
