"""Kept releases are reused only for the gate that made them: its version is a digest of all that judges."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import chat_shell
from chat_shell.sealed.gate import GATE_VERSION

_ROOT = Path(chat_shell.__file__).parents[1]
_COPIED = ("chat_shell/sealed/gate", "shared/disclosure", "shared/plain_text", "shared/models")
_JUDGING = [
    file.relative_to(_ROOT).as_posix()
    for place in ("chat_shell/sealed/gate", "shared/disclosure", "shared/plain_text")
    for file in sorted((_ROOT / place).rglob("*"))
    if file.suffix in (".py", ".txt")
] + ["shared/models/safe_summary.py"]
_READ = "import runpy, sys; print(runpy.run_path(sys.argv[1])['GATE_VERSION'])"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a root with nothing but the files that are read."""
    for place in _COPIED:
        shutil.copytree(_ROOT / place, tmp_path / place, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "shared" / "__init__.py").touch()
    return tmp_path


def _version(root: Path) -> str:
    file = root / "chat_shell" / "sealed" / "gate" / "version.py"
    read = subprocess.run(
        [sys.executable, "-S", "-c", _READ, str(file)], cwd=root, capture_output=True, text=True, check=True
    )
    return read.stdout.strip()


def test_a_copy_has_the_same_version_wherever_it_lies(copy: Path):
    assert _version(copy) == GATE_VERSION
    (copy / "shared" / "disclosure" / "__pycache__").mkdir()
    (copy / "shared" / "disclosure" / "__pycache__" / "words.pyc").write_bytes(b"x")
    (copy / "shared" / "models" / "other.py").write_text("x = 1")
    assert _version(copy) == GATE_VERSION


def test_every_change_of_a_file_that_judges_is_another_version(copy: Path):
    versions = {GATE_VERSION}
    for name in (*_JUDGING[:: max(1, len(_JUDGING) // 12)], "shared/models/safe_summary.py"):
        before = (copy / name).read_bytes()
        (copy / name).write_bytes(before + b"\n")
        versions.add(_version(copy))
        (copy / name).write_bytes(before)
    assert _version(copy) == GATE_VERSION
    (copy / "shared" / "disclosure" / "another.py").write_text("x = 1")
    versions.add(_version(copy))
    (copy / "shared" / "disclosure" / "another.py").unlink()
    assert len(versions) >= 14


def test_all_that_judges_is_among_the_files():
    imported = {
        name.replace(".", "/") + ".py"
        for name, module in sys.modules.items()
        if name.startswith(("shared.disclosure.", "shared.plain_text.", "chat_shell.sealed.gate.")) and module.__file__
    }
    assert imported
    assert imported <= set(_JUDGING)
