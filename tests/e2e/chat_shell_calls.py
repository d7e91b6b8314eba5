"""Calls of chat_shell at both of its servers, as the backend makes them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import grpc.aio
import httpx2
import orjson
from pydantic import TypeAdapter

from protos.execution.v1 import chat_shell_pb2, chat_shell_pb2_grpc, events_pb2
from shared.models.events import NEWER_EVENTS, NEWER_EVENTS_HEADER, REMINDERS_HEADER, ExecutionEvent
from shared.models.execution import AccessMode, ExecutionRequest, Knowledge, KnowledgeBaseRef
from shared.models.json_text import encode_json
from shared.models.openai_converter import OpenAIRequestConverter
from shared.wire import event_from_proto, report_from_proto, request_to_proto
from tests.e2e.pair import MODEL, SERVICE_TOKEN, Pair
from tests.fakes.chat_shell_requests import PLAIN, full_request
from tests.fakes.json_paths import at
from tests.patience import PATIENCE_SECONDS

FULL = Knowledge(
    bases=(KnowledgeBaseRef(id="kb_1", name="Handbook", access_mode=AccessMode.FULL),),
    access_mode=AccessMode.FULL,
    ticket="forged",
    user_words="",
)
EVENTS: TypeAdapter[ExecutionEvent] = TypeAdapter(ExecutionEvent)
ERROR_TRAILER = "ballast-error-bin"


@dataclass(frozen=True)
class Told:
    """What a server told: events, and the class and field of the refusal that ended them or stands in their place."""

    events: tuple[ExecutionEvent, ...] = ()
    refusal: tuple[str, str | None] | None = None


def bearer(token: str | None = SERVICE_TOKEN) -> dict[str, str]:
    """Return the header, or the metadata, that carries the service token."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


async def through_grpc(pair: Pair, request: ExecutionRequest, timeout_seconds: float = PATIENCE_SECONDS) -> Told:
    """Run a turn through the gRPC server."""
    async with grpc.aio.insecure_channel(pair.chat_shell_grpc_target) as channel:
        call = chat_shell_pb2_grpc.ChatShellStub(channel).Execute(
            request_to_proto(request), metadata=(*bearer().items(), (NEWER_EVENTS_HEADER, "1")), timeout=timeout_seconds
        )
        events: list[ExecutionEvent] = []
        try:
            while isinstance(message := await call.read(), events_pb2.ExecutionEvent):
                events.append(event_from_proto(message))
        except grpc.aio.AioRpcError as error:
            return Told(tuple(events), refusal=_report(error))
        finally:
            call.cancel()
    return Told(tuple(events))


async def through_http(pair: Pair, request: ExecutionRequest, *, is_newest: bool = True) -> Told:
    """Run a turn through the HTTP server."""
    known = {REMINDERS_HEADER: "1", NEWER_EVENTS_HEADER: NEWER_EVENTS} if is_newest else {}
    answer = await post(pair, encode_json(OpenAIRequestConverter.from_execution_request(request)), **known)
    if answer.status_code != 200:
        error = answer.json()["error"]
        return Told(refusal=(error["type"], error["param"]))
    frames = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    assert frames.pop() == "[DONE]"
    return Told(tuple(EVENTS.validate_json(frame, strict=True) for frame in frames))


async def post(pair: Pair, body: bytes, token: str | None = SERVICE_TOKEN, **headers: str) -> httpx2.Response:
    """Post a body to the HTTP server."""
    async with httpx2.AsyncClient(
        base_url=pair.chat_shell_http_url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    ) as client:
        return await client.post(
            "/v1/responses", content=body, headers={"content-type": "application/json", **bearer(token), **headers}
        )


async def grpc_refusal(pair: Pair, method: str, body: bytes, token: str | None) -> tuple[str, str]:
    """Call a method with raw bytes; return the status and the class of the refusal."""
    async with grpc.aio.insecure_channel(pair.chat_shell_grpc_target) as channel:
        path = f"/execution.v1.ChatShell/{method}"
        metadata = tuple(bearer(token).items())
        try:
            if method == "Execute":
                await channel.unary_stream(path)(body, metadata=metadata, timeout=60).read()
            else:
                await channel.unary_unary(path)(body, metadata=metadata, timeout=60)
        except grpc.aio.AioRpcError as error:
            return error.code().name, _report(error)[0]
    raise AssertionError("the call was not refused")


async def models_through_grpc(pair: Pair) -> list[str]:
    """List the models through the gRPC server."""
    async with grpc.aio.insecure_channel(pair.chat_shell_grpc_target) as channel:
        stub = chat_shell_pb2_grpc.ChatShellStub(channel)
        answer = await stub.ListModels(chat_shell_pb2.ListModelsRequest(), metadata=tuple(bearer().items()), timeout=60)
    return [card.name for card in answer.models]


def http_body(request: ExecutionRequest, **metadata: Any) -> bytes:
    """Write the body of an HTTP request with changed metadata; None leaves a key out."""
    body = OpenAIRequestConverter.from_execution_request(request)
    body["metadata"] = {
        name: value for name, value in {**at(body, "metadata"), **metadata}.items() if value is not None
    }
    return orjson.dumps(body)


def _report(error: grpc.aio.AioRpcError) -> tuple[str, str | None]:
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_TRAILER and isinstance(value, bytes):
            report = report_from_proto(events_pb2.ErrorReport.FromString(value))
            return report.type, report.param
    return error.code().name, None


def runnable(request: ExecutionRequest, **changes: Any) -> ExecutionRequest:
    """Make a request one that this chat_shell can run."""
    known = {"model": MODEL, "time_zone": "Europe/Berlin", "deadline": datetime.now(UTC) + timedelta(minutes=5)}
    return request.model_copy(update={**known, **changes})


def plain_request(**changes: Any) -> ExecutionRequest:
    return runnable(full_request(), **{"parameters": PLAIN, **changes})
