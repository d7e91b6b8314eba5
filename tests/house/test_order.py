"""The long files: that those exist which a run begins with, and that it is said which `make test` leaves out."""

import ast
import re

from tests.conftest import LONG_FILES
from tests.house.sources import ROOT, sources


def test_the_long_files_exist():
    assert [name for name in LONG_FILES if not (ROOT / name).is_file()] == []


def test_what_is_left_out_is_listed():
    marked = {source.name for source in sources("tests") if any(map(_leaves_out, source.nodes))}
    listed = re.findall(r"^\| `(tests/\S+)` \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == sorted(marked)


def _leaves_out(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.whole"
