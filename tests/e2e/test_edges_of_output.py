"""Answers of a provider at the edges: each turn that had text completes with it, and what is left out is said."""

from collections.abc import Iterator
from typing import NamedTuple

import orjson
import pytest

from tests.e2e.pair import Pair
from tests.e2e.turns import Body, bare_client, text_of
from tests.fakes.model_server import FakeModelControl, Reply

pytestmark = pytest.mark.combination

SAID = "So it is."
HIGH, LOW = "\\ud83d", "\\ude00"
STOP = '{"index":0,"delta":{},"finish_reason":"stop"}'
FUNCTION = {"type": "function", "name": "lamp", "parameters": {"type": "object"}}


class Case(NamedTuple):
    """Frames of a provider; `told` says whether something must be named as left out, None where either is right."""

    name: str
    frames: tuple[str, ...]
    told: bool | None
    text: str = SAID
    calls: int = 0


def chunk(choices: str, more: str = "") -> str:
    return f'{{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{choices}]{more}}}'


def says(content: str, more: str = "") -> str:
    return chunk(f'{{"index":0,"delta":{{"content":{content}{more}}},"finish_reason":null}}')


def calls(*made: str) -> str:
    return chunk(f'{{"index":0,"delta":{{"tool_calls":[{",".join(made)}]}},"finish_reason":null}}')


def call(place: int, arguments: str = '"{}"', more: str = "") -> str:
    function = f'{{"name":"lamp","arguments":{arguments}}}'
    return f'{{"index":{place},"id":"call_{place}","type":"function","function":{function}{more}}}'


TEXT = says('"So it is."')
END = chunk(STOP)
END_OF_CALLS = chunk('{"index":0,"delta":{},"finish_reason":"tool_calls"}')
GOOD = '{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}'


def counted(usage: str) -> tuple[str, ...]:
    return TEXT, END, chunk("", f',"usage":{usage}')


def ended(*frames: str) -> tuple[str, ...]:
    return *frames, END, chunk("", f',"usage":{GOOD}')


def of_usage() -> Iterator[Case]:
    wrong = ["1e400", "-1e400", "-1", '"12"', '"many"', "1.5", "[]", "{}", "1" + "0" * 30, "true", '"\\ud83d"']
    for value in wrong:
        yield Case(f"prompt {value[:8]}", counted(GOOD.replace(":5", f":{value}")), None)
        yield Case(f"completion {value[:8]}", counted(GOOD.replace(":3", f":{value}")), None)
    for value in ("1e400", "-1", '"x"'):
        yield Case(f"total {value}", counted(GOOD.replace(":8", f":{value}")), None)
        details = f'"prompt_tokens_details":{{"cached_tokens":{value}}}}}'
        yield Case(f"cached {value}", counted(f"{GOOD[:-1]},{details}"), None)
        details = f'"completion_tokens_details":{{"reasoning_tokens":{value}}}}}'
        yield Case(f"reasoning {value}", counted(f"{GOOD[:-1]},{details}"), None)
    for value in ("null", "[]", '"none"', "0", "1e400", "{}", "true"):
        yield Case(f"usage {value}", counted(value), None)
    for value in ("1e400", "-1", '"12"', "1.5"):
        yield Case(f"a wrong count is told: {value}", counted(GOOD.replace(":5", f":{value}")), True)
    yield Case("more cached than sent", counted(GOOD[:-1] + ',"prompt_tokens_details":{"cached_tokens":50}}'), None)
    yield Case("no usage", (TEXT, END), None)


def of_text() -> Iterator[Case]:
    yield Case("an emoji in two deltas", ended(says(f'"So {HIGH}"'), says(f'"{LOW} is."')), False, "So 😀 is.")
    yield Case("with nothing between", ended(says(f'"{HIGH}"'), says('""'), says(f'"{LOW}."')), False, "😀.")
    yield Case("with a null between", ended(says(f'"{HIGH}"'), says("null"), says(f'"{LOW}."')), False, "😀.")
    yield Case("many emojis cut", ended(*[says(f'"{half}"') for half in (HIGH, LOW) * 5]), False, "😀" * 5)
    yield Case("three halves", ended(says(f'"{HIGH}{HIGH}"'), says(f'"{LOW}."')), True, "😀.")
    yield Case("a lone high half", ended(says(f'"So {HIGH}it is."')), True)
    yield Case("a lone low half", ended(says(f'"So {LOW}it is."')), True)
    yield Case("halves in the wrong order", ended(says(f'"So {LOW}{HIGH}it is."')), True)
    yield Case("a half at the end", ended(TEXT, says(f'"{HIGH}"')), True)
    yield Case("a half at the beginning", ended(says(f'"{LOW}"'), TEXT), True)
    yield Case("a NUL", ended(says('"So \\u0000it is."')), True)
    yield Case("NULs alone between", ended(says('"So "'), says('"\\u0000\\u0000"'), says('"it is."')), True)
    yield Case("a NUL at the end", ended(TEXT, says('"\\u0000"')), True)
    yield Case("no character", ended(says('"So \\uffff"'), says('"it is."')), None, "So \uffffit is.")
    yield Case("a mark of order", ended(says('"\\ufeffSo it is."')), None, "\ufeffSo it is.")
    yield Case("ends of lines", ended(says('"So\\u2028it\\u0085is."')), False, "So\u2028it\u0085is.")
    yield Case("control characters", ended(says('"So\\u0007 it\\u001b is."')), False, "So\x07 it\x1b is.")
    yield Case("words like events", ended(says('"data: [DONE]\\n\\nSo it is."')), False, "data: [DONE]\n\nSo it is.")
    yield Case("a long delta", ended(says(f'"{"x" * 300_000}"')), False, "x" * 300_000)
    yield Case("empty deltas", ended(*[says('""')] * 500, TEXT), False)
    yield Case("single characters", ended(*[says(f'"{each}"') for each in SAID]), False)
    yield Case("a right-to-left mark", ended(says('"So \\u202eit is."')), False, "So \u202eit is.")
    yield Case("joined emojis cut", ended(says('"👩\\u200d"'), says('"👧."')), False, "👩\u200d👧.")
    yield Case("accents apart", ended(says('"e"'), says('"\\u0301."')), False, "e\u0301.")
    yield Case("reasoning with halves", ended(says("null", f',"reasoning_content":"{HIGH}"'), TEXT), None)
    yield Case("reasoning with a NUL", ended(says("null", ',"reasoning_content":"a\\u0000b"'), TEXT), None)
    yield Case("a refusal of null", ended(says('"So it is."', ',"refusal":null')), False)


def of_calls() -> Iterator[Case]:
    yield Case("two hundred calls", (TEXT, calls(*map(call, range(200))), END_OF_CALLS), True, calls=128)
    one_by_one = [calls(call(place)) for place in range(200)]
    yield Case("two hundred one by one", (TEXT, *one_by_one, END_OF_CALLS), True, calls=128)
    yield Case("a hundred calls", (TEXT, calls(*map(call, range(100))), END_OF_CALLS), False, calls=100)
    yield Case("gaps in the places", (TEXT, calls(call(3), call(70)), END_OF_CALLS), None, calls=2)
    yield Case(
        "arguments with a half", (TEXT, calls(call(0, f'"{{\\"a\\":\\"{HIGH}\\"}}"')), END_OF_CALLS), True, calls=1
    )
    yield Case("arguments with a NUL", (TEXT, calls(call(0, '"{\\"a\\":\\"\\u0000\\"}"')), END_OF_CALLS), True, calls=1)
    yield Case("arguments of nothing", (TEXT, calls(call(0, '""')), END_OF_CALLS), None, calls=1)
    yield Case("an unknown member", (TEXT, calls(call(0, more=',"x":1e400')), END_OF_CALLS), None, calls=1)


def of_frames() -> Iterator[Case]:
    reasons = ["null", '"end_turn"', '""']
    for reason in reasons:
        yield Case(f"finish {reason}", (TEXT, chunk(STOP.replace('"stop"', reason)), END), None)
    yield Case("finished twice", ended(TEXT, END), None)
    yield Case("text behind the finish", (says('"So "'), END, says('"it is."')), None, "So ")
    yield Case("usage before the text", (chunk("", f',"usage":{GOOD}'), TEXT, END), None)
    yield Case("usage in each frame", (says('"So "')[:-1] + f',"usage":{GOOD}}}', says('"it is."'), END), None)
    yield Case("no choices", ended(chunk(""), TEXT), None)
    yield Case("an endless time", ended(TEXT.replace('"created":1', '"created":1e400')), None)
    yield Case("a time of text", ended(TEXT.replace('"created":1', '"created":"now"')), None)
    yield Case("no id", ended(TEXT.replace('"id":"c"', '"id":null')), None)
    yield Case("an id of a number", ended(TEXT.replace('"id":"c"', '"id":12')), None)
    yield Case("no model", ended(TEXT.replace('"model":"m"', '"model":null')), None)
    yield Case("an error of null", ended(TEXT[:-1] + ',"error":null}'), None)
    yield Case("unknown members", ended(TEXT[:-1] + ',"x_groq":{"a":[1e400,"\\ud83d"]}}'), None)
    yield Case(
        "log probabilities of null", ended(TEXT.replace('"finish_reason"', '"logprobs":null,"finish_reason"')), None
    )
    yield Case(
        "a role in each frame",
        ended(says('"So "', ',"role":"assistant"'), says('"it is."', ',"role":"assistant"')),
        None,
    )
    yield Case("a role that is none", ended(says('"So it is."', ',"role":"oracle"')), None)
    yield Case("a role of null", ended(says('"So it is."', ',"role":null')), None)
    yield Case("calls of null", ended(says('"So it is."', ',"tool_calls":null')), None)
    yield Case("calls of nothing", ended(says('"So it is."', ',"tool_calls":[]')), None)


CASES = [*of_usage(), *of_text(), *of_calls(), *of_frames()]


def raw(frames: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(f"data: {frame}\n\n".encode() for frame in (*frames, "[DONE]"))


def find_fault(case: Case, response: Body) -> str | None:
    left_out = response.get("metadata", {}).get("ballast_left_out")
    kept = text_of(response).replace("\ufffd", "")
    made = sum(item["type"] == "function_call" for item in response["output"])
    if response["status"] != "completed":
        return f"{response['status']}: {response['error']}"
    if not kept.startswith(case.text) or made != case.calls:
        return f"text {kept[:60]!r}, {made} calls"
    if case.told is not None and case.told != bool(left_out):
        return f"left out: {left_out}"
    return None


def test_there_are_a_hundred_cases_of_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 100


async def test_no_turn_that_had_text_fails_and_nothing_is_left_out_in_silence(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    faults = dict[str, str]()
    async with bare_client(small_pair, "ann") as client:
        for case in CASES:
            await small_model.script(Reply(raw=raw(case.frames)))
            answer = await client.post("/v1/responses", json={"input": "Hi", "tools": [FUNCTION] * bool(case.calls)})
            fault = find_fault(case, answer.json()) if answer.status_code == 200 else answer.text[:200]
            if fault:
                faults[case.name] = fault
    assert faults == {}, orjson.dumps(faults, option=orjson.OPT_INDENT_2).decode()
