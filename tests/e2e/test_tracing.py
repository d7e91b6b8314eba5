"""One restricted turn as one trace over both services, with no content in it."""

from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from tests.e2e.client.knowledge_bases import new_base, searches
from tests.e2e.pair import PairOptions, start_model, start_pair
from tests.e2e.reserve import ENGLISH, LANGUAGES, SECONDARY, TELL_TALES
from tests.e2e.turns import bare_client, turn
from tests.examples import first_of
from tests.fakes.model_server import FakeModelControl, Reply
from tests.fakes.otlp_collector import CollectedSpan, collecting
from tests.patience import PATIENCE_SECONDS
from tests.servers.services import Launch

TRACE_ID, CALLER_SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
BACKEND, CHAT_SHELL = "ballast-backend", "ballast-chat-shell"
DOCUMENT = Path(__file__).parents[2] / "docs" / "tracing.md"

INTERNAL = "/internal/v1/knowledge"
INSIDE = f"""\
  chat fake-model [{CHAT_SHELL}]
    POST /v1/chat/completions [{CHAT_SHELL}]
  execute_tool knowledge_base_search [{CHAT_SHELL}]
    safe_summary pre_screen [{CHAT_SHELL}]
    safe_summary retrieval [{CHAT_SHELL}]
      POST {INTERNAL}/search [{CHAT_SHELL}]
        POST {INTERNAL}/search [{BACKEND}]
          search [{BACKEND}]
          read_whole [{BACKEND}]
    safe_summary secondary_model [{CHAT_SHELL}]
      POST /v1/chat/completions [{CHAT_SHELL}]
    safe_summary gate [{CHAT_SHELL}]
    safe_summary rewrite [{CHAT_SHELL}]
      POST /v1/chat/completions [{CHAT_SHELL}]
    safe_summary gate [{CHAT_SHELL}]
    safe_summary record [{CHAT_SHELL}]
      POST {INTERNAL}/outcomes [{CHAT_SHELL}]
        POST {INTERNAL}/outcomes [{BACKEND}]
  chat fake-model [{CHAT_SHELL}]
    POST /v1/chat/completions [{CHAT_SHELL}]"""


def tree(spans: Sequence[CollectedSpan], parent_id: str, depth: int = 0) -> list[str]:
    """Write the spans below a parent as a tree, in the order in which they were begun."""
    lines: list[str] = []
    for span in spans:
        if span.parent_id == parent_id:
            lines += [f"{'  ' * depth}{span.name} [{span.service}]", *tree(spans, span.span_id, depth + 1)]
    return lines


def expected(*, over_http: bool) -> list[str]:
    inside = INSIDE.splitlines()
    if over_http:
        way = [f"POST /v1/responses [{BACKEND}]", f"  POST /v1/responses [{CHAT_SHELL}]"]
    else:
        way = [f"execution.v1.ChatShell/Execute [{CHAT_SHELL}]"]
    under = "  " * (len(way) - 1)
    below = [*way, *(under + line for line in inside)]
    asked_before = [f"  GET /v1/models [{BACKEND}]", f"    GET /v1/models [{CHAT_SHELL}]"] if over_http else []
    top = [f"POST /v1/responses [{BACKEND}]", *asked_before, f"  turn [{BACKEND}]"]
    return [*top, *("    " + line for line in below)]


@pytest.mark.parametrize("over_http", first_of(False, True), ids=["grpc", "http"])
async def test_a_restricted_turn_is_one_trace_without_content(launch: Launch, tmp_path: Path, over_http: bool) -> None:
    honest = LANGUAGES["english"]
    second, url = start_model(launch, tmp_path / "second", SECONDARY)
    second.wait_ready()
    with collecting() as collector:
        traced = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        settings = {"CHAT_SHELL_SAFE_SUMMARY_MODEL": SECONDARY, "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": url}
        options = PairOptions(over_http=over_http, backend=traced, chat_shell={**traced, **settings})
        pair = start_pair(launch, tmp_path, options)
        base = new_base(pair, "stocks", {"reserve-rules.md": ENGLISH}, bob="restricted_analyst")
        async with pair.control() as main, FakeModelControl(url) as secondary:
            await main.script(searches(honest.query), Reply(text=(honest.answer,)))
            blocked = {**honest.summary, "summary": "The Quillmark reserve holds 48,200 litres."}
            await secondary.script(*[Reply(text=(orjson.dumps(said).decode(),)) for said in (blocked, honest.summary)])
            async with bare_client(pair, "bob") as client:
                client.headers["traceparent"] = f"00-{TRACE_ID}-{CALLER_SPAN_ID}-01"
                await turn(client, honest.question, tools=[base.tool])
            sent = [request.headers["traceparent"] for request in await main.requests()]
        assert pair.backend.stop() == 0
        assert pair.chat_shell.stop() == 0
    spans = [span for span in collector.spans if span.trace_id == TRACE_ID]
    spans.sort(key=lambda span: span.began_at)
    of_database = {span.name for span in spans if span.attributes.get("db.system.name") == "sqlite"}
    assert {"sql change", "sql find"} < of_database, of_database
    spans = [span for span in spans if span.name not in of_database]
    assert tree(spans, CALLER_SPAN_ID) == expected(over_http=over_http)
    assert [header.split("-")[1] for header in sent] == [TRACE_ID] * 2
    calls = [span for span in spans if span.name.startswith("chat ")]
    assert all(span.attributes["gen_ai.operation.name"] == "chat" for span in calls)
    assert all(span.attributes["gen_ai.usage.input_tokens"] > 0 for span in calls)
    exported = b"".join(collector.bodies).decode("utf-8", "replace")
    secrets = (*TELL_TALES, honest.question, honest.query, honest.answer, *honest.summary["risks"])
    assert [text for text in secrets if text in exported] == []


def test_the_guide_shows_this_trace() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert "\n".join(expected(over_http=False)) in text


def test_a_wrong_protocol_stops_the_start(launch: Launch, tmp_path: Path) -> None:
    service = launch(
        "chat_shell",
        settings={
            "SERVICE_TOKEN": "service-token-of-the-tests",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        },
        directory=tmp_path,
    )
    assert service.wait_or_kill(PATIENCE_SECONDS) == 2
    assert "OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf" in service.log()
