"""Work in the background is run by the supervisor alone; a task group holds tasks that end with the block around it."""

import ast

import pytest

from tests.house.sources import SERVICES, Source, parse, sources

SUPERVISOR = "backend/foundation/services/supervision.py"
MAKERS = ("create_task", "ensure_future", "run_coroutine_threadsafe")

# Task groups whose tasks end with the block: a request, a turn, the process itself.
SCOPES = {
    "backend/app.py",
    "backend/search/services/engine_index.py",
    "backend/search/services/fused_search.py",
    "backend/chat_shell_client/replica_links.py",
    "backend/chat_shell_client/shell_link.py",
    "backend/embeddings/providers/openai_embedder.py",
    "backend/turns/http/event_stream.py",
    "backend/turns/http/responses_socket.py",
    "backend/turns/services/compact_input.py",
    "backend/turns/services/lanes/join_lanes.py",
    "backend/turns/services/resume/recovery.py",
    "backend/turns/services/run/run_turn.py",
    "backend/turns/services/turn_registry.py",
    "backend/turns/services/queue/begin_waiting.py",
    "chat_shell/app.py",
    "chat_shell/servers/grpc/caller_link.py",
    "chat_shell/servers/http/turn_response.py",
    "chat_shell/sealed/summary_writer.py",
    "chat_shell/tools/mcp/child_streams.py",
    "chat_shell/tools/mcp/sessions.py",
    "chat_shell/tools/services/served_calls.py",
    "chat_shell/turns/services/run_tools.py",
    "chat_shell/turns/services/turn_service.py",
    "shared/http_server/server.py",
    "shared/http_server/tls_listener.py",
}


def bare_tasks(source: Source) -> list[str]:
    """Return the places where tasks are made that no supervisor and no named task group holds."""
    if source.name == SUPERVISOR:
        return []
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    return [source.at(call) for call in calls if _makes_bare_task(source.name, call.func)]


def _makes_bare_task(name: str, called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id in (*MAKERS, "TaskGroup")
    if not isinstance(called, ast.Attribute):
        return False
    if called.attr in MAKERS:
        owner = ast.unparse(called.value)
        return name not in SCOPES or not owner.endswith("group")
    return called.attr == "TaskGroup" and name not in SCOPES


def test_the_supervisor_runs_all_background_work() -> None:
    assert [place for source in sources(*SERVICES, "shared") for place in bare_tasks(source)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("backend/turns/redis/planted.py", "asyncio.create_task(loop())"),
        ("backend/turns/redis/planted.py", "asyncio.get_running_loop().create_task(loop())"),
        ("backend/turns/redis/planted.py", "asyncio.ensure_future(loop())"),
        ("backend/turns/redis/planted.py", "create_task(loop())"),
        ("backend/turns/redis/planted.py", "group = asyncio.TaskGroup()"),
        ("backend/app.py", "asyncio.create_task(loop())"),
    ],
)
def test_a_planted_task_is_found(name: str, text: str) -> None:
    assert bare_tasks(parse(name, text))


def test_every_named_place_still_has_a_task_group() -> None:
    have = {source.name for source in sources(*SERVICES, "shared") if "TaskGroup" in source.text}
    assert have == SCOPES
