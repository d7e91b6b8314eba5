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
_READ = """
import runpy, sys
from pathlib import Path
def version():
    return runpy.run_path("chat_shell/sealed/gate/version.py")["GATE_VERSION"]
print(version())
for changed in map(Path, sys.argv[1:]):
    before = changed.read_bytes()
    changed.write_bytes(before + b"\\n")
    print(version())
    changed.write_bytes(before)
print(version())
"""
"""Print the version of a copy as it is, with each of some files changed, and again as it is."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a root with nothing but the files that are read."""
    for place in _COPIED:
        shutil.copytree(_ROOT / place, tmp_path / place, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "shared" / "__init__.py").touch()
    return tmp_path


def _versions(root: Path, *changed: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", _READ, *changed],
        cwd=root,
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.split()


def test_a_copy_has_the_same_version_whatever_lies_beside_what_judges(copy: Path):
    beside = copy / "shared" / "disclosure" / "__pycache__"
    beside.mkdir()
    (beside / "words.pyc").write_bytes(b"x")
    (copy / "shared" / "models" / "other.py").write_text("x = 1")
    assert _versions(copy) == [GATE_VERSION] * 2


def test_every_change_of_a_file_that_judges_is_another_version(copy: Path):
    before, *changed, after = _versions(copy, *_JUDGING)
    assert before == after == GATE_VERSION
    assert len({before, *changed}) == 1 + len(_JUDGING)


def test_a_file_more_or_less_is_another_version(copy: Path):
    (copy / "shared" / "disclosure" / "another.py").write_text("x = 1")
    (more, _) = _versions(copy)
    (copy / "shared" / "disclosure" / "another.py").unlink()
    (copy / "shared" / "disclosure" / "lists" / "idioms.txt").unlink()
    assert len({more, _versions(copy)[0], GATE_VERSION}) == 3


def test_all_that_judges_is_among_the_files():
    imported = {
        name.replace(".", "/") + ".py"
        for name, module in sys.modules.items()
        if name.startswith(("shared.disclosure.", "shared.plain_text.", "chat_shell.sealed.gate.")) and module.__file__
    }
    assert imported
    assert imported <= set(_JUDGING)
