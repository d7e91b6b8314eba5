"""Each library with an outside is imported in its own adapters only; the sealed room imports almost nothing."""

import functools
import sys

import grimp

_OUTSIDE_OF_APP = {
    "aiohttp": ("backend.adapters.chat_shell", "backend.adapters.retrieval", "backend.adapters.embeddings",
                "chat_shell.adapters.models", "chat_shell.adapters.retrieval", "chat_shell.sealed"),
    "aiosqlite": ("backend.adapters.sql", "backend.adapters.retrieval"),
    "alembic": ("backend.adapters.sql",),
    "asyncpg": ("backend.adapters.sql", "backend.adapters.retrieval"),
    "docx": ("backend.adapters",),
    "fastapi": ("backend.adapters.http", "chat_shell.adapters.http"),
    "fastapi_offline": ("backend.adapters.http",),
    "google": ("shared.wire", "backend.adapters.chat_shell", "chat_shell.adapters.grpc"),
    "grpc": ("backend.adapters.chat_shell", "chat_shell.adapters.grpc"),
    "grpc_health": ("backend.adapters.chat_shell", "chat_shell.adapters.grpc"),
    "grpc_reflection": ("chat_shell.adapters.grpc",),
    "pypdf": ("backend.adapters",),
    "redis": ("backend.adapters.redis",),
    "prometheus_client": ("backend.adapters", "chat_shell.adapters"),
    "sqlalchemy": ("backend.adapters.sql", "backend.adapters.retrieval"),
    "starlette": ("backend.adapters.http", "chat_shell.adapters.http"),
    "structlog": ("shared.telemetry", "backend.adapters", "chat_shell.adapters", "chat_shell.services.turns"),
    "uvicorn": ("backend.adapters.http", "chat_shell.adapters.http"),
    "yaml": ("chat_shell.adapters", "chat_shell.settings"),
}  # fmt: skip
_WIRING = ("backend.app", "backend.__main__", "chat_shell.app", "chat_shell.__main__")
_SEALED_MAY_IMPORT = frozenset({"shared", "chat_shell", "pydantic", "aiohttp", "orjson"})
_NEVER_SEALED = frozenset({"logging", "structlog", "opentelemetry", "warnings"})


@functools.cache
def graph() -> grimp.ImportGraph:
    """Build the graph of who imports whom, once."""
    return grimp.build_graph("shared", "backend", "chat_shell", include_external_packages=True, cache_dir=None)


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
    return any(module == package or module.startswith(f"{package}.") for package in packages)


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
    assert strayed("backend.services.start_turn", "sqlalchemy")
    assert strayed("backend.adapters.http.rim", "redis")
    assert not strayed("backend.adapters.redis.events", "redis")
    assert not strayed("backend.app", "sqlalchemy")
    for imported in ("logging", "structlog", "chat_shell.ports", "backend.domain.access", "protos.execution", "grpc"):
        assert leaks("chat_shell.sealed.summary", imported)
    for imported in ("re", "orjson", "chat_shell.sealed.gate.numbers", "shared.models.messages"):
        assert not leaks("chat_shell.sealed.summary", imported)
    assert not leaks("chat_shell.adapters.tools.search", "structlog")
