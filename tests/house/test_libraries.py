"""Each library with an outside is imported in its own adapters only; the sealed room imports almost nothing."""

import functools
import sys
from fnmatch import fnmatchcase

import grimp

_OUTSIDE_OF_APP = {
    "aiohttp": ("backend.chat_shell_client", "backend.*.providers", "backend.identity.tokens", "chat_shell.models",
                "chat_shell.*.http", "chat_shell.sealed"),
    "aiosqlite": ("backend.*.sql",),
    "alembic": ("backend.migrations",),
    "asyncpg": ("backend.*.sql",),
    "chardet": ("backend.extraction.formats",),
    "click": ("cli.running", "cli.commands", "cli.app"),
    "fastapi": ("backend.*.http", "chat_shell.*.http"),
    "fastapi_offline": ("backend.*.http",),
    "google": ("shared.wire", "backend.chat_shell_client", "chat_shell.*.grpc"),
    "grpc": ("backend.chat_shell_client", "chat_shell.*.grpc"),
    "grpc_health": ("backend.chat_shell_client", "chat_shell.*.grpc"),
    "grpc_reflection": ("chat_shell.*.grpc",),
    "httpx2": ("chat_shell.*.mcp", "cli.api", "cli.diagnosis", "cli.connection", "cli.app"),
    "jwt": ("backend.identity.tokens",),
    "mcp": ("backend.mcp.server", "chat_shell.*.mcp"),
    "mcp_types": ("backend.mcp.server", "chat_shell.*.mcp"),
    "opentelemetry": ("shared.open_telemetry",),
    "olefile": ("backend.extraction.formats",),
    "openpyxl": ("backend.extraction.formats",),
    "pptx": ("backend.extraction.formats",),
    "pypdfium2": ("backend.extraction.formats",),
    "rich": ("cli.terminal",),
    "redis": ("backend.*.redis",),
    "prometheus_client": ("shared.loop_meter", "backend.*.telemetry", "backend.*.http", "chat_shell.*.telemetry",
                          "chat_shell.*.http"),
    "scim2_models": ("backend.scim.protocol",),
    "scim2_server": ("backend.scim.protocol",),
    "sqlalchemy": ("backend.*.sql", "backend.migrations"),
    "starlette": ("backend.*.http", "backend.mcp.server", "backend.mcp.chosen", "chat_shell.*.http"),
    "structlog": ("shared.telemetry", "shared.loop_meter", "backend.*.telemetry", "backend.*.http",
                  "backend.*.dynamic_blocks", "backend.mcp.server", "chat_shell.*.mcp", "chat_shell.*.telemetry",
                  "chat_shell.servers", "chat_shell.models.configured", "chat_shell.turns.services.turn_service"),
    "uvicorn": ("backend.*.http", "shared.http_server"),
    "yaml": ("chat_shell.*.configured", "chat_shell.tools.skill_folders", "chat_shell.settings"),
}  # fmt: skip
_WIRING = (
    "backend.app",
    "backend.check",
    "backend.__main__",
    "chat_shell.check",
    "chat_shell.app",
    "chat_shell.__main__",
)
_SEALED_MAY_IMPORT = frozenset({"shared", "chat_shell", "pydantic", "aiohttp", "orjson"})
_NEVER_SEALED = frozenset({"logging", "structlog", "opentelemetry", "warnings"})


@functools.cache
def graph() -> grimp.ImportGraph:
    """Build the graph of who imports whom, once."""
    return grimp.build_graph("shared", "backend", "chat_shell", "cli", include_external_packages=True, cache_dir=None)


def strayed(importer: str, library: str) -> bool:
    return not _is_in(importer, (*_OUTSIDE_OF_APP[library], *_WIRING))


def leaks(importer: str, imported: str) -> bool:
    """Whether an import takes protected text near a way out, or the rest of the service near it."""
    top = imported.partition(".")[0]
    if not _is_in(importer, ("chat_shell.sealed",)):
        return False
    if top == "chat_shell":
        return not _is_in(imported, ("chat_shell.sealed",))
    return top in _NEVER_SEALED or not (top in _SEALED_MAY_IMPORT or top in sys.stdlib_module_names)


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(fnmatchcase(module, package) or fnmatchcase(module, f"{package}.*") for package in packages)


def test_libraries_stay_in_their_adapters():
    known = graph().modules
    found = {
        f"{importer} imports {library}"
        for library in _OUTSIDE_OF_APP
        if library in known
        for importer in graph().find_modules_that_directly_import(library)
        if strayed(importer, library)
    }
    assert found == set()


def test_the_sealed_room_is_sealed():
    found = {
        f"{importer} imports {imported}"
        for importer in graph().modules
        if _is_in(importer, ("chat_shell.sealed",))
        for imported in graph().find_modules_directly_imported_by(importer)
        if leaks(importer, imported)
    }
    assert found == set()


def test_the_checks_bite():
    assert strayed("backend.turns.services.start_turn", "sqlalchemy")
    assert strayed("backend.foundation.http.middleware", "redis")
    assert not strayed("backend.streams.redis.event_log", "redis")
    assert not strayed("backend.app", "sqlalchemy")
    for imported in (
        "logging",
        "structlog",
        "chat_shell.knowledge.ports",
        "backend.knowledge.domain.knowledge",
        "protos.execution",
        "grpc",
    ):
        assert leaks("chat_shell.sealed.summary", imported)
    for imported in ("re", "orjson", "chat_shell.sealed.gate.numbers", "shared.models.messages"):
        assert not leaks("chat_shell.sealed.summary", imported)
    assert not leaks("chat_shell.knowledge.telemetry.sealed_room", "structlog")
