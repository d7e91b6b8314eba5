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
_ROOMS = "Rooms of the backend"
_CHAT_SHELL_ROOMS = "Rooms of chat_shell"
_FLOORS = "Floors and doors of the backend"
_CHAT_SHELL_FLOORS = "Floors and doors of chat_shell"
_PORTS = "Ports name nothing concrete"
_SERVICES = "Services know ports, not what fills them"
_WIRE = "Protobuf stays on the wire"
_SEALED = "Protected text stays in the sealed room"

_PLANTS = [
    ("backend/turns/services/planted.py", "import chat_shell.knowledge.ports", _SEPARATE),
    ("chat_shell/turns/domain/planted.py", "import backend.turns.domain.turn_request", _SEPARATE),
    ("shared/planted.py", "import backend.identity.domain", _SEPARATE),
    ("shared/planted.py", "import fastapi", "shared carries no framework"),
    ("backend/unlisted_room/__init__.py", "", _ROOMS),
    ("backend/foundation/services/planted.py", "import backend.identity.domain", _ROOMS),
    ("backend/identity/services/planted.py", "import backend.knowledge.ports.knowledge", _ROOMS),
    ("backend/knowledge/domain/planted.py", "import backend.restricted.domain.restricted", _ROOMS),
    ("backend/conversations/domain/planted.py", "import backend.restricted.domain.restricted", _ROOMS),
    ("backend/conversations/services/planted.py", "import backend.turns.services.start_turn", _ROOMS),
    ("backend/conversations/sql/planted.py", "import backend.settings", _ROOMS),
    ("chat_shell/unlisted_room/__init__.py", "", _CHAT_SHELL_ROOMS),
    ("chat_shell/models/domain/planted.py", "import chat_shell.turns.domain.turn", _CHAT_SHELL_ROOMS),
    ("chat_shell/turns/services/planted.py", "import chat_shell.doors.http.app", _CHAT_SHELL_ROOMS),
    ("chat_shell/models/ports_planted.py", "import chat_shell.knowledge.ports", _CHAT_SHELL_ROOMS),
    ("backend/turns/domain/planted.py", "import backend.turns.ports.events", _FLOORS),
    ("backend/turns/domain/planted.py", "import backend.conversations.ports.conversations", _FLOORS),
    ("backend/turns/ports/planted.py", "import backend.turns.services.start_turn", _FLOORS),
    ("backend/turns/services/planted.py", "import backend.turns.redis.client", _FLOORS),
    ("backend/turns/services/planted.py", "import backend.conversations.sql.tables", _FLOORS),
    ("backend/turns/http/planted.py", "import backend.turns.wiring", _FLOORS),
    ("backend/turns/http/planted.py", "import backend.knowledge.http.routes", _FLOORS),
    ("backend/restricted/sql/planted.py", "import backend.knowledge.sql.store", _FLOORS),
    ("backend/turns/redis/planted.py", "import backend.foundation.sql.database", _FLOORS),
    ("chat_shell/turns/domain/planted.py", "import chat_shell.turns.ports", _CHAT_SHELL_FLOORS),
    ("chat_shell/turns/services/planted.py", "import chat_shell.models.chat_completions", _CHAT_SHELL_FLOORS),
    ("chat_shell/turns/telemetry/planted.py", "import chat_shell.knowledge.http.backend", _CHAT_SHELL_FLOORS),
    ("backend/turns/ports/planted.py", "import sqlalchemy", _PORTS),
    ("chat_shell/tools/ports/planted.py", "import aiohttp", _PORTS),
    ("chat_shell/turns/services/planted.py", "import aiohttp", _SERVICES),
    ("backend/identity/services/planted.py", "import os", _SERVICES),
    ("chat_shell/models/configured/planted.py", "from protos.execution.v1 import planted_pb2", _WIRE),
    ("shared/models/planted.py", "from protos.execution.v1 import planted_pb2", _WIRE),
    ("chat_shell/knowledge/http/planted.py", "import chat_shell.sealed.protected", _SEALED),
    ("chat_shell/turns/services/planted.py", "from chat_shell.sealed.protected import ProtectedText", _SEALED),
    *(
        (f"{room}/domain/planted.py", f"import {module}", _PURE)
        for room, module in (
            ("backend/turns", "asyncio"), ("chat_shell/turns", "grpc"), ("backend/knowledge", "redis"),
            ("chat_shell/tools", "time"), ("backend/restricted", "os"), ("chat_shell/knowledge", "random"),
            ("backend/a_new_room", "logging"), ("chat_shell/models", "uuid"),
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
    (tree / "tests/house").mkdir(parents=True)
    shutil.copy(ROOT / "tests/house/contracts.py", tree / "tests/house")
    return tree


def test_the_floors_hold(copy: Path):
    assert broken_contracts(copy) == []


@pytest.mark.parametrize(("place", "statement", "contract"), _PLANTS)
def test_a_planted_import_is_found(copy: Path, place: str, statement: str, contract: str):
    planted = copy / place
    above = [folder for folder in planted.parents if copy in folder.parents]
    new_packages = [folder for folder in above if not (folder / "__init__.py").exists()]
    planted.parent.mkdir(parents=True, exist_ok=True)
    for package in new_packages:
        (package / "__init__.py").touch()
    planted.write_text(f"{statement}\n")
    try:
        assert contract in broken_contracts(copy)
    finally:
        planted.unlink()
        for package in new_packages:
            shutil.rmtree(package, ignore_errors=True)
