"""What must not be written: late imports, catch-alls, swallowed cancellations, hidden clocks, mocks, tests in tests."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase

from tests.house.sources import PRODUCT, Function, Source, parse, sources

# Whatever escapes a request, a call or a tool is caught here, logged and turned into an answer.
_LAST_CATCHES = (
    "backend/*/http/*",
    "chat_shell/*/http/*",
    "chat_shell/*/grpc/*",
    "chat_shell/turns/services/turn_service.py",  # what both servers of chat_shell share
    "chat_shell/turns/services/run_tools.py",
    "cli/app.py",
    "chat_shell/tools/mcp/sessions.py",  # tasks that belong to no call any more
)
_SEALED_GUARD = (
    "chat_shell/sealed/exception_guard.py",  # drops exceptions whole: what they say may be protected
)
_AMBIENT = frozenset(
    {
        "datetime.now", "datetime.datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time",
        "uuid.uuid4", "uuid4", "os.getenv",
    }
)  # fmt: skip
_AMBIENT_PLACES = (
    "/settings.py",
    "/app.py",
    "/__main__.py",
    "shared/clock.py",
    "shared/environment.py",
    "shared/ids.py",
    "deploy/",
)


_CHOOSING = ("/wiring.py", "/chosen.py")  # what a setting chooses is imported when it is chosen: ADR 11


def late_imports(file: Source) -> list[str]:
    if file.name.endswith(_CHOOSING):
        return []
    return [
        file.at(node)
        for function in file.functions()
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def catch_alls(file: Source) -> list[str]:
    return [
        file.at(handler)
        for handler in _handlers(file)
        if _caught(handler) & {"", "Exception", "BaseException"} and not _is_last_catch(file, handler)
    ]


def swallowed_cancellations(file: Source) -> list[str]:
    return [
        file.at(handler)
        for handler in _handlers(file)
        if _caught(handler) & {"", "BaseException", "CancelledError"} and not _raises(handler)
    ]


def ambient_reads(file: Source) -> list[str]:
    if file.is_outside or any(place in file.name for place in _AMBIENT_PLACES):
        return []
    return [
        file.at(node)
        for node in file.nodes
        if (isinstance(node, ast.Call) and ast.unparse(node.func) in _AMBIENT)
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ")
    ]


def mocks(file: Source) -> list[str]:
    names = ("unittest.mock", "monkeypatch", "pytest.mark.skip", "pytest.skip", "pytest.mark.xfail", "importorskip")
    return [f"{file.name} {name}" for name in names if name in file.text]


def imports_of_tests(file: Source) -> list[str]:
    return [
        file.at(node)
        for node in file.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(path.startswith("tests.") and ".test_" in path for path in _imported(node))
    ]


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    return [start + alias.name for alias in node.names]


def _handlers(file: Source) -> Iterator[ast.ExceptHandler]:
    return (node for node in file.nodes if isinstance(node, ast.ExceptHandler))


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {""}
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(caught).rpartition(".")[2] for caught in types}


def _is_last_catch(file: Source, handler: ast.ExceptHandler) -> bool:
    if file.name in _SEALED_GUARD:
        return not _logs_the_traceback(handler)
    return any(fnmatchcase(file.name, place) for place in _LAST_CATCHES) and (
        _raises(handler) or _logs_the_traceback(handler)
    )


def _logs_the_traceback(handler: ast.ExceptHandler) -> bool:
    calls = [node for node in ast.walk(handler) if isinstance(node, ast.Call)]
    return any(
        ast.unparse(call.func).endswith((".exception", ".tool_failed"))
        or any(keyword.arg == "exc_info" for keyword in call.keywords)
        for call in calls
    )


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) for node in ast.walk(handler) if not isinstance(node, Function))


def test_imports_stand_at_the_top():
    assert [place for file in sources() for place in late_imports(file)] == []


def test_only_the_last_catches_catch_everything_and_they_log_it():
    assert [place for file in sources(*PRODUCT) for place in catch_alls(file)] == []


def test_cancellation_is_never_swallowed():
    assert [place for file in sources(*PRODUCT) for place in swallowed_cancellations(file)] == []


def test_wall_clock_ids_and_environment_are_ports_or_settings():
    assert [place for file in sources(*PRODUCT) for place in ambient_reads(file)] == []


def test_tests_neither_mock_nor_skip():
    this_file = "tests/house/test_statements.py"
    assert [place for file in sources("tests") if file.name != this_file for place in mocks(file)] == []


def test_what_tests_share_stands_in_no_test_module():
    assert [place for file in sources() for place in imports_of_tests(file)] == []


def test_the_checks_bite():
    outside, elsewhere = "backend/turns/http/a.py", "backend/turns/services/a.py"
    assert late_imports(parse(elsewhere, "def f():\n    import os"))
    for caught in ("", " Exception", " (ValueError, BaseException) as error"):
        assert catch_alls(parse(elsewhere, f"try: ...\nexcept{caught}: log.exception('x')"))
        assert catch_alls(parse(outside, f"try: ...\nexcept{caught}: ..."))
        assert not catch_alls(parse(outside, f"try: ...\nexcept{caught}: log.exception('x')"))
    assert not catch_alls(parse(elsewhere, "try: ...\nexcept ValueError: ..."))
    assert not catch_alls(parse("chat_shell/sealed/exception_guard.py", "try: ...\nexcept Exception: ..."))
    assert catch_alls(parse("chat_shell/sealed/exception_guard.py", "try: ...\nexcept Exception: log.exception('x')"))
    assert catch_alls(parse("chat_shell/sealed/room.py", "try: ...\nexcept Exception: ..."))
    assert swallowed_cancellations(parse(outside, "try: ...\nexcept asyncio.CancelledError: ..."))
    assert not swallowed_cancellations(parse(outside, "try: ...\nexcept asyncio.CancelledError: raise"))
    assert ambient_reads(parse(elsewhere, "x = datetime.now(UTC)"))
    assert ambient_reads(parse(elsewhere, "x = os.environ['A']"))
    assert not ambient_reads(parse("shared/clock.py", "x = datetime.now(UTC)"))
    assert mocks(parse("tests/a.py", "from unittest.mock import Mock"))
    for imported in ("from tests.unit.test_a import b", "import tests.unit.test_a", "from tests.unit import test_a"):
        assert imports_of_tests(parse("tests/unit/b.py", imported))
    assert not imports_of_tests(
        parse("tests/a.py", "from aiohttp.test_utils import b\nfrom tests.fakes.clock import c")
    )
