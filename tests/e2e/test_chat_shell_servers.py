"""The two servers of one running chat_shell: both run the same turn, and refuse strangers."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import grpc
import grpc.aio
import httpx2
import orjson
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from hypothesis import HealthCheck, Phase, example, given, settings

from protos.execution.v1 import chat_shell_pb2_grpc
from shared.models.execution import ExecutionRequest
from shared.models.json_text import encode_json
from shared.models.openai_converter import OpenAIRequestConverter
from shared.prompts.knowledge_base import CANNOT_ANSWER
from shared.wire import request_to_proto
from tests.e2e.chat_shell_calls import (
    FULL,
    bearer,
    grpc_refusal,
    http_body,
    models_through_grpc,
    plain_request,
    post,
    runnable,
    through_grpc,
    through_http,
)
from tests.e2e.pair import MODEL, Pair
from tests.e2e.turns import Body, tool_results
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.model_server import FakeModelControl, Fault, Reply, ScriptedCall
from tests.patience import PATIENCE_SECONDS
from tests.strategies import execution_requests


@given(drawn=execution_requests())
@example(drawn=full_request())
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_one_value_makes_the_same_bytes_through_both_servers(small_pair: Pair, drawn: ExecutionRequest) -> None:
    request = runnable(drawn)
    async with small_pair.control() as model:
        await model.reset()
        by_grpc = await through_grpc(small_pair, request)
        grpc_bodies = [recorded.body for recorded in await model.requests()]
        await model.reset()
        by_http = await through_http(small_pair, request)
        http_bodies = [recorded.body for recorded in await model.requests()]
    assert by_grpc == by_http
    assert grpc_bodies == http_bodies
    is_answered = bool(by_grpc.events) and by_grpc.events[-1].type == "turn_finished"
    assert len(grpc_bodies) == is_answered  # what JSON cannot carry, such as a huge number, is refused before


async def test_context_and_suffix_come_from_the_request_alone(small_pair: Pair, small_model: FakeModelControl) -> None:
    request = plain_request()
    await through_http(small_pair, request)
    [recorded] = await small_model.requests()
    context, current = recorded.json_body["messages"][-2:]
    assert context["content"] == "Knowledge bases:\n- kb_1 Handbook\n\nThe user is Ада."
    assert current["content"][-1] == {"type": "text", "text": "\n\n<time>2026-11-22 09:30 Europe/Berlin</time>"}


@pytest.mark.parametrize("token", [None, "wrong", "Service-Token-Of-The-Tests"])
async def test_both_servers_are_closed_to_strangers(
    small_pair: Pair, small_model: FakeModelControl, token: str | None
) -> None:
    request = plain_request()
    body = request_to_proto(request).SerializeToString()
    for method, raw in (("Execute", body), ("Execute", b"\xff\xff"), ("ListModels", b"")):
        assert await grpc_refusal(small_pair, method, raw, token) == ("UNAUTHENTICATED", "Unauthenticated")
    for raw in (encode_json(OpenAIRequestConverter.from_execution_request(request)), b"no json"):
        answer = await post(small_pair, raw, token)
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "Unauthenticated")
    async with httpx2.AsyncClient(
        base_url=small_pair.chat_shell_http_url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    ) as client:
        assert (await client.get("/v1/models", headers=bearer(token))).status_code == 401
    assert await small_model.requests() == []


async def test_health_reflection_and_models_answer(small_pair: Pair) -> None:
    target = small_pair.chat_shell_grpc_target
    async with grpc.aio.insecure_channel(target) as channel:
        stub = cast(Any, health_pb2_grpc).HealthStub(channel)
        for service in ("", "execution.v1.ChatShell"):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=60)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
    with grpc.insecure_channel(target) as channel:
        services = cast(list[str], cast(Any, ProtoReflectionDescriptorDatabase(channel)).get_services())
    assert {"execution.v1.ChatShell", "grpc.health.v1.Health"} <= set(services)
    async with httpx2.AsyncClient(
        base_url=small_pair.chat_shell_http_url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    ) as client:
        listed = (await client.get("/v1/models", headers=bearer())).json()
        assert (await client.get("/healthz")).status_code == (await client.get("/readyz")).status_code == 200
        assert (await client.get("/metrics")).status_code == 200
    assert "ballast_turns_total" in (await small_pair.metrics())[1]
    assert await models_through_grpc(small_pair) == [model["id"] for model in listed["data"]] == [MODEL]


async def test_the_deadline_ends_a_turn_at_both_servers(small_pair: Pair, small_model: FakeModelControl) -> None:
    await small_model.script(Reply(text=("So ",), fault=Fault.STALL, repeat=True))
    servers = (through_grpc, through_http)
    late = plain_request(deadline=datetime.now(UTC) - timedelta(seconds=1))
    for told in await asyncio.gather(*(server(small_pair, late) for server in servers)):
        assert told.refusal == ("DeadlineExceeded", None)
    for seconds in (2, 8, 30):  # a busy machine may need longer to begin both turns
        soon = plain_request(deadline=datetime.now(UTC) + timedelta(seconds=seconds))
        both = await asyncio.gather(*(server(small_pair, soon) for server in servers))
        if all("text_delta" in {event.type for event in told.events} for told in both):
            break
    for told in both:
        assert told.events[-1].type == "turn_failed"
        assert told.events[-1].error.type == "DeadlineExceeded"
    for number in range(len(await small_model.requests())):
        await small_model.wait_closed(number)


async def test_the_deadline_of_the_call_itself_counts_too(small_pair: Pair, small_model: FakeModelControl) -> None:
    await small_model.script(Reply(text=("So ",), fault=Fault.STALL, repeat=True))
    for seconds in (1, 6, 30):  # a busy machine may need longer to ask the model
        told = await through_grpc(small_pair, plain_request(), timeout_seconds=seconds)
        # whichever of the two is quicker tells of it
        assert told.refusal == ("DEADLINE_EXCEEDED", None) or told.events[-1].type == "turn_failed"
        if await small_model.requests():
            break
    await small_model.wait_closed()


async def test_who_leaves_a_server_cancels_the_turn(small_pair: Pair, small_model: FakeModelControl) -> None:
    request = plain_request()
    await small_model.script(Reply(text=("on ",), fault=Fault.ENDLESS, repeat=True))
    async with grpc.aio.insecure_channel(small_pair.chat_shell_grpc_target) as channel:
        call = chat_shell_pb2_grpc.ChatShellStub(channel).Execute(
            request_to_proto(request), metadata=tuple(bearer().items())
        )
        while b"on " not in cast(Any, await call.read()).SerializeToString():
            continue
        call.cancel()
        await small_model.wait_closed()
    body = encode_json(OpenAIRequestConverter.from_execution_request(request))
    async with (
        httpx2.AsyncClient(
            base_url=small_pair.chat_shell_http_url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
        ) as client,
        client.stream("POST", "/v1/responses", content=body, headers=bearer()) as answer,
    ):
        async for line in answer.aiter_lines():
            if line == "event: text_delta":
                break
    await small_model.wait_closed()
    assert len(await small_model.requests()) == 2


@pytest.mark.parametrize("missing", ["turn", "base"])
async def test_a_missing_access_mode_is_restricted(
    small_pair: Pair, small_model: FakeModelControl, missing: str
) -> None:
    call = ScriptedCall(name="knowledge_base_search", arguments='{"query": "margin"}')
    await small_model.script(Reply(tool_calls=(call,)), Reply(text=("No.",)))
    request = plain_request(knowledge=FULL)
    silent_base = orjson.dumps([{"id": "kb_1", "name": "Handbook"}]).decode()
    changes = {"access_mode": None} if missing == "turn" else {"knowledge_bases": silent_base}
    answer = await post(small_pair, http_body(request, **changes))
    assert answer.status_code == 200
    one, two = await small_model.requests()
    assert [tool["function"]["name"] for tool in one.json_body["tools"]][:1] == ["knowledge_base_search"]
    assert "knowledge_base_read_document" not in one.body.decode()
    assert tool_results(two)[-1]["content"] == CANNOT_ANSWER
    assert '"reason": "bad_ticket"' in small_pair.chat_shell.log()  # the sealed room asked, and nobody else


def changed(path: str, value: object) -> Callable[[Body], object]:
    """Make a change of a body: set what lies at a dotted path, or delete it where the value is `...`."""
    *steps, last = path.split(".")

    def change(body: Body) -> None:
        for step in steps:
            body = body[step]
        if value is ...:
            del body[last]
        else:
            body[last] = value

    return change


MALFORMED: list[tuple[str, object, str]] = [
    ("model", 1, "model"),
    ("model", ..., "model"),
    ("model", "no-such-model", "model"),
    ("input", ..., "input"),
    ("input", 3, "input"),
    ("input", [{"role": "user"}], "input[0].content"),
    ("input", [{"role": "wizard", "content": "x"}], "input[0].role"),
    ("input", [{"type": "message", "role": "user", "content": [{"type": "video"}]}], "input[0].content[0].type"),
    ("instructions", 5, "instructions"),
    ("temperature", "hot", "temperature"),
    ("tools", [{"type": "function"}], "tools[0].name"),
    ("tools", [{"type": "file_search"}], "tools[0].type"),
    ("tools", [{"type": "function", "name": "knowledge_base_search"}], "tools[0].name"),
    ("tool_choice", "perhaps", "tool_choice"),
    ("surprise", 1, "surprise"),
    ("stream", False, "stream"),
    ("metadata", ..., "metadata"),
    ("metadata", [], "metadata"),
    ("metadata.access_mode", "everything", "metadata.access_mode"),
    ("metadata.epoch", "-1", "metadata.epoch"),
    ("metadata.epoch", 1, "metadata.epoch"),
    ("metadata.user", "{", "metadata.user"),
    ("metadata.sent_at", "yesterday", "metadata.sent_at"),
    ("metadata.time_zone", "Mars/Olympus", "time_zone"),
    ("metadata.deadline", ..., "metadata.deadline"),
    ("metadata.limits", '{"max_knowledge_calls": -1, "max_model_calls": null}', "metadata.limits.max_knowledge_calls"),
    ("metadata.knowledge_bases", '[{"id": "kb"}]', "metadata.knowledge_bases[0].name"),
    ("metadata.surprise", "1", "metadata.surprise"),
]


@pytest.mark.parametrize(("path", "value", "param"), MALFORMED)
async def test_a_malformed_body_is_refused_with_its_field(
    small_pair: Pair, small_model: FakeModelControl, path: str, value: object, param: str
) -> None:
    body = orjson.loads(http_body(plain_request()))
    changed(path, value)(body)
    answer = await post(small_pair, orjson.dumps(body))
    assert answer.status_code == (404 if value == "no-such-model" else 400), answer.text
    assert answer.json()["error"]["param"] == param
    assert await small_model.requests() == []


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"a": NaN}', b"\xff", b'{"model": "\\ud800"}', b"[" * 100_000])
async def test_what_is_no_json_object_is_refused(small_pair: Pair, raw: bytes) -> None:
    answer = await post(small_pair, raw)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "InvalidRequest")


@pytest.mark.parametrize("raw", [b"\xff\xff", b"", b"\x0a\x02\xff\xff"])
async def test_what_is_no_request_message_is_refused(small_pair: Pair, raw: bytes) -> None:
    from_server = await grpc_refusal(small_pair, "Execute", raw, bearer()["authorization"].removeprefix("Bearer "))
    assert from_server == ("INVALID_ARGUMENT", "InvalidRequest")
