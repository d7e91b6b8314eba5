"""The contracts of import-linter hold, and each is broken by a bad import that is added to the graph."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Mapping
from copy import deepcopy
from itertools import accumulate

import grimp
import pytest
from importlinter import configuration
from importlinter.application.use_cases import read_user_options
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.contract import Contract

from tests.house.contracts import PackageLayers
from tests.house.sources import ROOT

_PACKAGES = ("shared", "backend", "chat_shell", "cli", "protos")
_LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
_PLANTED_PROTOBUF = "protos.execution.v1.planted_pb2"
_SEPARATE = "The two services never import each other; shared knows neither"
_COMMAND = "The command knows the services by their API alone"
_UNKNOWN_COMMAND = "No service knows the command"
_PURE = "Domains are pure"
_IN_BACKEND = "Packages of the backend"
_PARTS = "Parts of the services of turns"
_IN_CHAT_SHELL = "Packages of chat_shell"
_LAYERS = "Layers of the packages of the backend"
_CHAT_SHELL_LAYERS = "Layers of the packages of chat_shell"
_PORTS = "Ports name nothing concrete"
_SERVICES = "Services know ports, not what fills them"
_WIRE = "Protobuf stays on the wire"
_SEALED = "Protected text stays in the sealed room"

_PLANTS = [
    ("backend/turns/services/planted.py", "import chat_shell.knowledge.ports", _SEPARATE),
    ("chat_shell/turns/domain/planted.py", "import backend.openai_api.domain.turn_request", _SEPARATE),
    ("shared/planted.py", "import backend.identity.domain", _SEPARATE),
    ("cli/planted.py", "import backend.settings", _COMMAND),
    ("cli/commands/planted.py", "import sqlalchemy", _COMMAND),
    ("shared/planted.py", "import cli.app", _UNKNOWN_COMMAND),
    ("shared/planted.py", "import fastapi", "shared carries no framework"),
    ("shared/planted.py", "import uvicorn", "shared carries no framework"),
    ("shared/http_server/planted.py", "import fastapi", "shared carries no framework"),
    ("backend/unlisted_package/__init__.py", "", _IN_BACKEND),
    ("backend/foundation/services/planted.py", "import backend.identity.domain", _IN_BACKEND),
    ("backend/identity/services/planted.py", "import backend.knowledge.ports.knowledge", _IN_BACKEND),
    ("backend/knowledge/domain/planted.py", "import backend.restricted.domain.restricted", _IN_BACKEND),
    ("backend/conversations/domain/planted.py", "import backend.restricted.domain.restricted", _IN_BACKEND),
    ("backend/conversations/services/planted.py", "import backend.turns.services.start_turn", _IN_BACKEND),
    ("backend/conversations/sql/planted.py", "import backend.settings", _IN_BACKEND),
    ("backend/conversations/domain/planted.py", "import backend.prompt.domain.epochs", _IN_BACKEND),
    ("backend/prompt/domain/planted.py", "import backend.openai_api.domain.turn_request", _IN_BACKEND),
    ("backend/limits/services/planted.py", "import backend.streams.ports.events", _IN_BACKEND),
    ("backend/openai_api/domain/planted.py", "import backend.turns.domain.lanes", _IN_BACKEND),
    ("backend/streams/services/planted.py", "import backend.chat_shell_client.ports.chat_shell", _IN_BACKEND),
    ("backend/search/domain/planted.py", "import backend.extraction.domain.chunking", _IN_BACKEND),
    ("backend/extraction/formats/planted.py", "import backend.knowledge.domain.knowledge", _IN_BACKEND),
    ("backend/embeddings/services/planted.py", "import backend.search.domain.bm25", _IN_BACKEND),
    ("backend/turns/services/planted.py", "import backend.mcp.services.lookups", _IN_BACKEND),
    ("backend/turns/services/request/planted.py", "import backend.turns.services.run.run_turn", _PARTS),
    ("backend/turns/services/run/planted.py", "import backend.turns.services.lanes.join_lanes", _PARTS),
    ("backend/turns/services/lanes/planted.py", "import backend.turns.services.resume.recovery", _PARTS),
    ("backend/turns/services/queue/planted.py", "import backend.turns.services.resume.recovery", _PARTS),
    ("chat_shell/unlisted_package/__init__.py", "", _IN_CHAT_SHELL),
    ("chat_shell/models/transport/planted.py", "import chat_shell.turns.domain.turn", _IN_CHAT_SHELL),
    ("chat_shell/turns/services/planted.py", "import chat_shell.servers.http.app", _IN_CHAT_SHELL),
    ("chat_shell/models/ports_planted.py", "import chat_shell.knowledge.ports", _IN_CHAT_SHELL),
    ("backend/turns/domain/planted.py", "import backend.streams.ports.events", _LAYERS),
    ("backend/turns/domain/planted.py", "import backend.conversations.ports.conversations", _LAYERS),
    ("backend/turns/ports/planted.py", "import backend.turns.services.start_turn", _LAYERS),
    ("backend/turns/services/planted.py", "import backend.foundation.redis.client", _LAYERS),
    ("backend/turns/services/planted.py", "import backend.conversations.sql.tables", _LAYERS),
    ("backend/turns/http/planted.py", "import backend.turns.wiring", _LAYERS),
    ("backend/turns/http/planted.py", "import backend.knowledge.http.routes", _LAYERS),
    ("backend/mcp/http/planted.py", "import backend.knowledge.http.knowledge_shapes", _LAYERS),
    ("backend/mcp/services/planted.py", "import backend.mcp.server.tools", _LAYERS),
    ("backend/restricted/sql/planted.py", "import backend.knowledge.sql.store", _LAYERS),
    ("backend/turns/redis/planted.py", "import backend.foundation.sql.database", _LAYERS),
    ("backend/turns/wiring.py", "import backend.knowledge.sql.store", _LAYERS),
    ("backend/knowledge/wiring.py", "import backend.foundation.sql.sqlite", _LAYERS),
    ("chat_shell/turns/domain/planted.py", "import chat_shell.turns.ports", _CHAT_SHELL_LAYERS),
    ("chat_shell/turns/services/planted.py", "import chat_shell.models.chat_completions", _CHAT_SHELL_LAYERS),
    ("chat_shell/turns/telemetry/planted.py", "import chat_shell.knowledge.http.backend", _CHAT_SHELL_LAYERS),
    ("backend/turns/ports/planted.py", "import sqlalchemy", _PORTS),
    ("chat_shell/tools/ports/planted.py", "import aiohttp", _PORTS),
    ("chat_shell/turns/services/planted.py", "import aiohttp", _SERVICES),
    ("backend/identity/services/planted.py", "import os", _SERVICES),
    ("backend/mcp/services/planted.py", "import mcp", _SERVICES),
    ("chat_shell/models/configured/planted.py", "from protos.execution.v1 import planted_pb2", _WIRE),
    ("shared/models/planted.py", "from protos.execution.v1 import planted_pb2", _WIRE),
    ("chat_shell/knowledge/http/planted.py", "import chat_shell.sealed.protected", _SEALED),
    ("chat_shell/turns/services/planted.py", "from chat_shell.sealed.protected import ProtectedText", _SEALED),
    *(
        (f"{package}/domain/planted.py", f"import {module}", _PURE)
        for package, module in (
            ("backend/turns", "asyncio"), ("chat_shell/turns", "grpc"), ("backend/knowledge", "redis"),
            ("chat_shell/tools", "time"), ("backend/restricted", "os"), ("chat_shell/knowledge", "random"),
            ("backend/a_new_room", "logging"), ("chat_shell/models", "uuid"),
        )
    ),
]  # fmt: skip


_CONTRACT_TYPES: dict[str, type[Contract]] = {
    "package_layers": PackageLayers,
    "forbidden": ForbiddenContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}


@functools.cache
def contracts() -> Mapping[str, Contract]:
    """Read the contracts of pyproject.toml by their names."""
    configuration.configure()
    options = read_user_options(str(ROOT / "pyproject.toml"))
    read = (
        _CONTRACT_TYPES[one["type"]](name=one["name"], session_options=options.session_options, contract_options=one)
        for one in options.contracts_options
    )
    return {contract.name: contract for contract in read}


@functools.cache
def graph() -> grimp.ImportGraph:
    """Build the graph of who imports whom, once: checks work on copies."""
    return grimp.build_graph(*_PACKAGES, include_external_packages=True, cache_dir=None)


def with_plant(place: str, statement: str) -> grimp.ImportGraph:
    """Return a copy of the graph with one file more, which holds one import at most."""
    planted = deepcopy(graph())
    importer = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for module in accumulate(importer.split("."), "{}.{}".format):
        planted.add_module(module)
    for imported in imported_modules(statement):
        if imported not in planted.modules:
            is_ours = imported.partition(".")[0] in _PACKAGES
            assert not is_ours or imported == _PLANTED_PROTOBUF, f"{imported} is not there to be imported"
            planted.add_module(imported, is_squashed=not is_ours)
        planted.add_import(importer=importer, imported=imported, line_number=1, line_contents=statement)
    return planted


def imported_modules(statement: str) -> list[str]:
    """Name the modules that a statement imports; of `from a import b` it is `a.b` where that is a module, else `a`."""
    names: list[str] = []
    for node in ast.parse(statement).body:
        if isinstance(node, ast.ImportFrom):
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [name if name in {*graph().modules, _PLANTED_PROTOBUF} else str(node.module) for name in full]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def is_kept(contract: Contract, imports: grimp.ImportGraph) -> bool:
    """Check a contract on a copy, since some contracts change the graph they look at."""
    return contract.check(deepcopy(imports), verbose=False).kept


def test_the_command_finds_the_contracts_and_holds_them():
    done = subprocess.run(
        [sys.executable, "-c", _LINT, "--no-cache", "--no-logo"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    kept = re.findall(r"^(.*) KEPT", done.stdout, re.MULTILINE)
    assert kept == list(contracts()), done.stdout + done.stderr
    assert f"Contracts: {len(kept)} kept, 0 broken." in done.stdout


def test_each_contract_is_broken_by_a_plant():
    assert {contract for _, _, contract in _PLANTS} == set(contracts())


@pytest.mark.parametrize(("place", "statement", "contract"), _PLANTS)
def test_a_planted_import_is_found(place: str, statement: str, contract: str):
    assert is_kept(contracts()[contract], graph())
    assert not is_kept(contracts()[contract], with_plant(place, statement))
