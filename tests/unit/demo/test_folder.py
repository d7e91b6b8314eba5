"""The folder of a demo."""

import stat
from pathlib import Path

import pytest

from deploy.demo.folder import FolderTaken, locked_folder


@pytest.mark.parametrize("is_new", [True, False])
def test_only_the_owner_looks_in(tmp_path: Path, *, is_new: bool):
    var = tmp_path / "var"
    if not is_new:
        var.mkdir(mode=0o755)
    with locked_folder(var):
        assert stat.S_IMODE(var.stat().st_mode) == 0o700


def test_a_folder_is_free_again_behind_its_demo(tmp_path: Path):
    for _ in range(2):
        with locked_folder(tmp_path), pytest.raises(FolderTaken), locked_folder(tmp_path):
            """Never reached."""
