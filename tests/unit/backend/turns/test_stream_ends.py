"""Every way in which a stream can end: an event that says so, then `[DONE]`, in the words of both APIs."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, MutableMapping
from typing import Any, cast

import orjson
import pytest

from backend.openai_api.domain.response_events import LoggedEvent
from backend.streams.memory.event_log import MemoryEventLog
from backend.turns.domain.quiet_pace import QuietPace
from backend.turns.http.event_stream import (
    DONE,
    HEARTBEAT,
    EventBatches,
    EventStream,
    Release,
    frames,
    release_nothing,
)
from backend.turns.http.quiet_send import STEP_BYTES, STEP_SECONDS, QuietSend
from backend.turns.http.responses_socket import FrameReader
from backend.turns.http.routes import ResponsesFormat
from backend.turns.http.turn_answers import ApiFormat
from shared.errors import BallastError, Unavailable
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.checked_streams import SAID, api_formats, checked
from tests.fakes.openai_house import open_house
from tests.fakes.served_turns import CHAT, LeavingClient, idle, reached, serve_api

SECRET = "what nobody may read"


def error_classes(root: type[BallastError] = BallastError) -> Iterator[type[BallastError]]:
    yield root
    for child in root.__subclasses__():
        yield from error_classes(child)


ERRORS: list[Exception] = [*(each("It went wrong.", param="input") for each in error_classes())]
DEFECTS: list[BaseException] = [
    KeyError(SECRET),
    TimeoutError(),
    OSError(SECRET),
    asyncio.CancelledError(),
    RuntimeError(SECRET),
    RecursionError(),
    MemoryError(),
    ExceptionGroup(SECRET, [ValueError(SECRET), Unavailable("It went wrong.")]),
]


async def sent_by(
    api_format: ApiFormat,
    batches: EventBatches,
    body: Any,
    quiet_seconds: float = 0,
    release: Release = release_nothing,
) -> list[bytes]:
    sent: list[bytes] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message.get("body", b""))

    stream = EventStream(batches, api_format, body, release)
    stream.pace = QuietPace(quiet_seconds) if quiet_seconds else None
    await stream({"type": "http", "method": "POST"}, receive, send)
    return sent


@pytest.mark.parametrize("words", [1, 60])
async def test_steps_of_a_quiet_stream_tell_nothing_of_what_is_said(words: int) -> None:
    pieces = [b'{"delta": "%b"}' % (b"w" * 40) for _ in range(words)]
    batches = [(LoggedEvent(number, "response.output_text.delta", piece),) for number, piece in enumerate(pieces)]

    async def told() -> EventBatches:
        for batch in batches:
            yield batch

    _head, *steps, end = await sent_by(ResponsesFormat(), told(), {}, 3 * STEP_SECONDS)
    assert ([len(step) for step in steps], end) == ([STEP_BYTES] * 3, b"")
    parts = b"".join(steps).split(b"\n\n")
    whole = b"\n\n".join(part for part in parts if not part.startswith(b":"))
    assert whole == frames([event for batch in batches for event in batch]) + DONE
    assert steps[0].strip(b": \n") == b"" or words > 1


@pytest.mark.parametrize("size", [1, 2, STEP_BYTES - 1, STEP_BYTES, STEP_BYTES + 1, 5 * STEP_BYTES])
async def test_a_long_quiet_stream_ends_a_power_of_two_times_as_late(size: int) -> None:
    sent: list[bytes] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["body"])

    quiet = QuietSend(send, QuietPace(STEP_SECONDS))
    async with asyncio.TaskGroup() as group:
        group.create_task(quiet.run())
        await quiet({"type": "http.response.body", "body": b"x" * size, "more_body": False})
    needed = -(-size // STEP_BYTES)
    assert [len(step) for step in sent[:-1]] == [STEP_BYTES] * (1 << (needed - 1).bit_length())
    assert b"".join(sent).replace(b":", b"").replace(b" ", b"").strip() == b"x" * size


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_socket_reads_events_whole_however_a_stream_is_cut(size: int) -> None:
    bodies = ['{"said": "One: {two}"}', '{"said": ": "}']
    events = [LoggedEvent(number, "response.event", body.encode()) for number, body in enumerate(bodies)]
    whole = b":    \n" + frames(events[:1]) + HEARTBEAT + b":  \n" + frames(events[1:]) + b"\n" + DONE
    reader = FrameReader()
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert [event for piece in pieces for event in reader.read(piece)] == bodies


async def broken(batches: list[tuple[LoggedEvent, ...]], error: BaseException) -> EventBatches:
    for batch in batches:
        yield batch
    raise error


@pytest.mark.parametrize("error", [*ERRORS, *DEFECTS], ids=lambda error: type(error).__name__)
async def test_each_error_of_a_followed_turn_is_told_and_ends_its_stream(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_house(answer("Hel", "lo.")) as house:
        ended = await house.ask()
        events = [event async for batch in house.events.read(ended.id, -1) for event in batch]
    for count in (0, 1, len(events) - 1):
        for api_format in api_formats():
            batches = broken([(each,) for each in events[:count]], error)
            last = checked(b"".join(await sent_by(api_format, batches, ended.body)), api_format)
            told = last["error"]
            is_known = isinstance(error, BallastError)
            assert last.get("type", "error") == "error"
            assert (told["code"] == error.code) if is_known else (told["code"] == "server_error")
            assert SECRET not in str(last)
    assert ("Unexpected error" in capsys.readouterr().out) is not isinstance(error, BallastError)


@pytest.mark.parametrize("error", [Unavailable("Away."), *DEFECTS], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("quiet_seconds", [0, 2 * STEP_SECONDS])
async def test_what_fails_behind_a_stream_does_not_cut_it(error: BaseException, quiet_seconds: float) -> None:
    async def release(_has_left: bool) -> None:
        raise error

    async def told() -> EventBatches:
        yield (LoggedEvent(0, "response.event", b"{}"),)

    sent = b"".join(await sent_by(ResponsesFormat(), told(), {}, quiet_seconds, release))
    assert sent.rstrip(b": \n").endswith(DONE.rstrip())


class BrokenLog(MemoryEventLog):
    """Raises an error behind the first events of a log."""

    def __init__(self, error: Exception) -> None:
        super().__init__(600)
        self._error = error

    async def read(self, response_id: str, after: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
        async for batch in super().read(response_id, after):
            yield batch[:1]
            raise self._error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_each_error_of_the_log_behind_a_stream_ends_it_rightly(error: Exception) -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("Hello.")], events=BrokenLog(error)) as api:
        streaming = asyncio.create_task(api.http.post("/v1/responses", json={"input": "Hi", "stream": True}))
        chunks = asyncio.create_task(api.http.post(CHAT, json=orjson.loads(SAID) | {"stream": True}))
        codes = {
            checked(each.content, api_format)["error"]["code"]
            for each, api_format in zip(await asyncio.gather(streaming, chunks), api_formats(), strict=True)
        }
        assert codes == {"events_lost" if isinstance(error, Unavailable) else cast(BallastError, error).code}
        gate.set()
        await idle(api)


async def test_a_stream_whose_waiting_turn_is_deleted_ends_as_cancelled() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("First")]) as api:
        first = await api.openai.responses.create(input="Hi", background=True)
        await reached(api, 1)
        assert first.conversation is not None
        client = LeavingClient(
            api, "/v1/responses", conversation=first.conversation.id, if_running="queue", stream=True
        )
        waiting = await client.response_id()
        assert (await api.http.delete(f"/v1/responses/{waiting}")).status_code == 200
        await client.asking
        stream = b"".join(message.get("body", b"") for message in client.received)
        last = checked(stream, ResponsesFormat())
        assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")
        gate.set()
        await idle(api)
