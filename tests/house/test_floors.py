"""The floors hold, and bite when a bad import is planted in a copy of the tree."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT

_PACKAGES = ("shared", "backend", "chat_shell", "protos")
_LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
_SEPARATE = "The two services never import each other; shared knows neither"
_PURE = "Domains are pure"
_NEIGHBOURS = "No adapter of the backend imports another"
_CHAT_SHELL_NEIGHBOURS = "No adapter of chat_shell imports another"
_WIRE = "Protobuf stays on the wire"
_SEALED = "Protected text stays in the sealed room"

_PLANTS = [
    ("backend/services/planted.py", "import chat_shell.ports", _SEPARATE),
    ("backend/app_planted_part/__init__.py", "", "Floors of the backend"),
    ("chat_shell/domain/planted.py", "import backend.ports.events", _SEPARATE),
    ("shared/planted.py", "import backend.domain.identity", _SEPARATE),
    ("shared/planted.py", "import fastapi", "shared carries no framework"),
    ("backend/domain/planted.py", "import backend.ports.events", "Floors of the backend"),
    ("backend/ports/planted.py", "import backend.services", "Floors of the backend"),
    ("backend/services/planted.py", "import backend.adapters.sql", "Floors of the backend"),
    ("backend/services/planted.py", "import backend.settings", "Floors of the backend"),
    ("backend/adapters/sql/planted.py", "import backend.settings", "Floors of the backend"),
    ("chat_shell/domain/planted.py", "import chat_shell.ports", "Floors of chat_shell"),
    ("chat_shell/services/planted.py", "import chat_shell.adapters.models", "Floors of chat_shell"),
    ("backend/adapters/sql/planted.py", "import backend.adapters.http", _NEIGHBOURS),
    ("chat_shell/adapters/tools/planted.py", "import chat_shell.adapters.models", _CHAT_SHELL_NEIGHBOURS),
    ("backend/ports/planted.py", "import sqlalchemy", "Ports name nothing concrete"),
    ("chat_shell/services/planted.py", "import aiohttp", "Services know ports, not what fills them"),
    ("chat_shell/adapters/models/planted.py", "from protos.execution.v1 import planted_pb2", _WIRE),
    ("shared/models/planted.py", "from protos.execution.v1 import planted_pb2", _WIRE),
    ("chat_shell/adapters/tools/planted.py", "import chat_shell.sealed.protected", _SEALED),
    ("chat_shell/services/planted.py", "from chat_shell.sealed.protected import ProtectedText", _SEALED),
    *(
        (f"{service}/domain/planted.py", f"import {module}", _PURE)
        for service, module in (
            ("backend", "asyncio"), ("chat_shell", "grpc"), ("backend", "redis"), ("chat_shell", "time"),
            ("backend", "os"), ("chat_shell", "random"), ("backend", "logging"), ("chat_shell", "uuid"),
        )
    ),
]  # fmt: skip


def broken_contracts(tree: Path) -> list[str]:
    """Lint a tree and return the names of its broken contracts."""
    done = subprocess.run(
        [sys.executable, "-c", _LINT, "--no-cache", "--no-logo"],
        cwd=tree,
        env={"PYTHONPATH": str(tree), "PATH": "", "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    return re.findall(r"^(.*) BROKEN", done.stdout, re.MULTILINE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is linted, with a protobuf module to import."""
    tree = tmp_path_factory.mktemp("floors")
    for package in _PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    (tree / "protos/execution/v1/planted_pb2.py").touch()
    return tree


def test_the_floors_hold(copy: Path):
    assert broken_contracts(copy) == []


@pytest.mark.parametrize(("place", "statement", "contract"), _PLANTS)
def test_a_planted_import_is_found(copy: Path, place: str, statement: str, contract: str):
    planted = copy / place
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(f"{statement}\n")
    try:
        assert contract in broken_contracts(copy)
    finally:
        planted.unlink()
        if not any(planted.parent.iterdir()):
            planted.parent.rmdir()
