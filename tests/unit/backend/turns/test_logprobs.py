"""Log probabilities of an answer's tokens, in the words of both APIs: streamed, whole and read again."""

from typing import Any

import orjson
import pytest
from openai import BadRequestError

from backend.openai_api.domain.response_object import build_ending
from backend.openai_api.domain.shown_output import ShownOutput
from backend.turns.http.event_stream import DONE
from shared.errors import PermissionDenied
from shared.models.events import (
    ExecutionEvent,
    FinishReason,
    ModelCallFinished,
    ModelCallStarted,
    TextDelta,
    TextLogprobs,
)
from tests.fakes.chat_shell_scripted import USAGE, answer
from tests.fakes.openai_types import check_chunk, check_completion, check_event, check_response
from tests.fakes.served_turns import CHAT, HI, serve_api
from tests.unit.backend.restricted.restricted_house import BENIGN, TOOLS, restricted_house
from tests.unit.backend.turns.samples import projection

INCLUDED = ["message.output_text.logprobs"]


def token(text: str) -> dict[str, Any]:
    plain = {"token": text, "logprob": -0.5, "bytes": list(text.encode())}
    return {**plain, "top_logprobs": [plain]}


def weighed(*texts: str) -> list[ExecutionEvent]:
    """Script an answer of these tokens, and of one without a text at its end."""
    said: list[ExecutionEvent] = []
    for text in (*texts, ""):
        said += [TextLogprobs(tokens=orjson.dumps([token(text)]).decode()), TextDelta(text=text)]
    end = ModelCallFinished(call=1, finish_reason=FinishReason.STOP, usage=USAGE)
    return [ModelCallStarted(call=1), *said[:-1], end, *answer(*texts)[-2:]]


TOKENS = [token("Hel"), token("lo"), token("")]


async def test_a_completion_tells_them_and_asks_for_alternatives() -> None:
    async with serve_api(weighed("Hel", "lo")) as api:
        raw = await api.http.post(CHAT, json={"messages": HI, "logprobs": True, "top_logprobs": 3})
        check_completion(raw.json())
        assert raw.json()["choices"][0]["logprobs"] == {"content": TOKENS, "refusal": None}
        assert api.turns.sent[0].parameters.top_logprobs == 3
        plain = await api.http.post(CHAT, json={"messages": HI})
        assert plain.json()["choices"][0]["logprobs"] is None
        assert api.turns.sent[1].parameters.top_logprobs is None


async def test_chunks_tell_them_beside_their_text() -> None:
    async with serve_api(weighed("Hel", "lo"), weighed("A", "B")) as api:
        asked = {"messages": HI, "logprobs": True, "stream": True, "n": 2}
        content = (await api.http.post(CHAT, json=asked)).content
        chunks = [check_chunk(frame) for frame in content.removesuffix(DONE).split(b"data: ") if frame]
        told: dict[int, list[tuple[str, list[Any]]]] = {0: [], 1: []}
        for choice in [choice for chunk in chunks for choice in chunk["choices"] if choice["logprobs"]]:
            told[choice["index"]].append((choice["delta"]["content"], choice["logprobs"]["content"]))
        assert told[0] == [("Hel", [token("Hel")]), ("lo", [token("lo")]), ("", [token("")])]
        assert [text for text, _ in told[1]] == ["A", "B", ""]


async def test_a_response_tells_them_and_keeps_them() -> None:
    async with serve_api(weighed("Hel", "lo")) as api:
        asked = {"input": "Hi", "include": INCLUDED, "top_logprobs": 1, "stream": True}
        frames = (await api.http.post("/v1/responses", json=asked)).content.split(b"\n\n")[:-2]
        events = [check_event(frame.partition(b"data: ")[2]) for frame in frames]
        deltas = [event["logprobs"] for event in events if event["type"] == "response.output_text.delta"]
        assert deltas == [[token("Hel")], [token("lo")]]
        [done] = [event for event in events if event["type"] == "response.output_text.done"]
        assert done["logprobs"] == TOKENS
        response_id = events[-1]["response"]["id"]
        stored = (await api.http.get(f"/v1/responses/{response_id}")).json()
        check_response(stored)
        assert stored["output"][0]["content"][0]["logprobs"] == TOKENS
        assert (stored["top_logprobs"], api.turns.sent[0].parameters.top_logprobs) == (1, 1)
        resent = [{"role": "user", "content": "Hi"}, stored["output"][0], {"role": "user", "content": "More"}]
        again = await api.http.post("/v1/responses", json={"input": resent, "include": INCLUDED})
        assert again.status_code == 200
        assert api.turns.sent[1].parameters.top_logprobs == 0
        assert api.turns.sent[1].conversation_id == api.turns.sent[0].conversation_id


def test_who_goes_on_with_a_turn_knows_those_that_were_shown() -> None:
    first = projection()
    events = first.start()
    for step in weighed("Hel", "lo")[:-4]:
        events += first.feed(step)
    shown = ShownOutput()
    shown.feed(events)
    second = projection()
    second.restore(shown)
    ended: Any = second.finish(build_ending(FinishReason.STOP, USAGE), 1_700_000_009)
    [item] = ended[0]["output"]
    assert item["content"][0]["logprobs"] == TOKENS[:2]
    replayed = ShownOutput()
    replayed.feed(events[:-1])
    missing = replayed.catch_up([item])
    assert orjson.loads(missing[-1].body)["item"] == item


async def test_alternatives_without_probabilities_are_a_mistake() -> None:
    async with serve_api() as api:
        with pytest.raises(BadRequestError, match="give that, or leave this field out") as caught:
            await api.openai.chat.completions.create(model="demo-model", messages=HI, top_logprobs=1)
        assert caught.value.param == "top_logprobs"


@pytest.mark.parametrize("fields", [{"include": INCLUDED}, {"top_logprobs": 1}])
async def test_a_restricted_turn_tells_none(fields: dict[str, Any]) -> None:
    async with restricted_house(weighed(BENIGN)) as house:
        with pytest.raises(PermissionDenied, match="restricted") as caught:
            await house.start(input="Who?", tools=TOOLS, **fields)
        assert [caught.value.param] == list(fields)
        assert not house.sent
        # Should a chat_shell tell some unasked, nobody gets them.
        ended = await house.ask(input="Who?", tools=TOOLS)
        assert BENIGN in str(ended.body["output"])
        assert "'logprob'" not in f"{ended} {await house.all_events(ended)}"
