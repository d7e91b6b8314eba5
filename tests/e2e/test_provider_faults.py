"""Every way in which a provider fails: a typed error, what was said kept, nothing secret in it."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from chat_shell.turns.services.model_answer import MAX_ANSWER_CHARACTERS
from shared.prompts.summary import COMPACTED
from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.e2e.turns import Body, bare_client, items_of, messages_in, new_conversation, streamed_turn, text_of, turn
from tests.fakes.model_server import FakeModelControl, Fault, Reply
from tests.servers.services import Launch

pytestmark = pytest.mark.combination

RAW_WORDS = "raw words of the provider"
CREDENTIAL = "credential-of-the-provider"
QUESTION = "a question that no log may show"
UNREPEATED = {"retry-after": "60"}
OVERFLOW = "context_length_exceeded"
STORED = {
    OVERFLOW: "invalid_prompt",
    "content_filter": "invalid_prompt",
    "insufficient_quota": "rate_limit_exceeded",
}
"""What a response's own error says in the place of codes that OpenAI's list for it does not have."""


def refusal(status: int, code: str = "whatever", words: str = "", **headers: str) -> Reply:
    """Refuse as OpenAI does, with words that echo what must not get out."""
    message = f"{words} {RAW_WORDS} Bearer {CREDENTIAL}"
    body = orjson.dumps({"error": {"message": message, "type": "x", "param": None, "code": code}}).decode()
    return Reply(status=status, body=body, headers=headers)


def frames(*contents: bytes) -> Reply:
    return Reply(raw=tuple(b"data: %b\n\n" % content for content in contents))


@dataclass(frozen=True)
class Case:
    """A fault, and what becomes of it."""

    reply: Reply
    kind: str
    status: int = 502
    said: str = ""
    code: str = "server_error"


CASES = {
    "401": Case(refusal(401, "invalid_api_key"), "ModelAuthenticationFailed"),
    "403": Case(refusal(403), "ModelAuthenticationFailed"),
    "429": Case(refusal(429, **UNREPEATED), "ModelRateLimited", 429, code="rate_limit_exceeded"),
    "quota": Case(refusal(429, "insufficient_quota"), "ModelQuotaExhausted", 429, code="insufficient_quota"),
    "500": Case(refusal(500, **UNREPEATED), "ModelUnavailable"),
    "overflow": Case(refusal(400, OVERFLOW), "ModelContextOverflow", 400, code=OVERFLOW),
    "overflow in words": Case(
        refusal(400, words="This model's maximum context length is 8192 tokens."),
        "ModelContextOverflow",
        400,
        code=OVERFLOW,
    ),
    "filter": Case(refusal(400, "content_filter"), "ModelContentFiltered", 400, code="content_filter"),
    "image": Case(refusal(400, "invalid_image_format"), "ModelRequestRejected", 400, code="invalid_image_format"),
    "400": Case(refusal(400, words="no"), "ModelRequestRejected", 400, code="invalid_prompt"),
    "404": Case(refusal(404), "ModelUnknownToProvider"),
    "no such model": Case(refusal(400, "model_not_found"), "ModelUnknownToProvider"),
    "redirect": Case(Reply(status=302, body=RAW_WORDS, headers={"location": "http://x/"}), "ModelProtocolViolated"),
    "page": Case(Reply(body=f"<html>{RAW_WORDS}</html>"), "ModelProtocolViolated"),
    "cut": Case(Reply(text=("Half ", "an "), fault=Fault.CUT), "ModelStreamCut", said="Half an "),
    "cut at once": Case(Reply(text=("x",), fault=Fault.CUT, fault_after=0), "ModelStreamCut"),
    "no end": Case(Reply(text=("Half ",), fault=Fault.END), "ModelStreamCut", said="Half "),
    "garbage": Case(Reply(text=("Half ",), fault=Fault.GARBAGE), "ModelProtocolViolated", said="Half "),
    "no frames": Case(Reply(raw=(RAW_WORDS.encode(),)), "ModelProtocolViolated"),
    "wrong shape": Case(frames(b'{"choices": [{"delta": 7}]}'), "ModelProtocolViolated"),
    "empty": Case(Reply(), "ModelProtocolViolated"),
    "error frame": Case(
        frames(b'{"error": {"message": "%b", "code": "insufficient_quota"}}' % RAW_WORDS.encode()),
        "ModelQuotaExhausted",
        429,
        code="insufficient_quota",
    ),
}
STALLS = {
    "comments": Case(Reply(text=("Half ",), fault=Fault.STALL_WITH_COMMENTS), "ModelStalled", 504, said="Half "),
    "silence": Case(Reply(text=("x",), fault=Fault.STALL, fault_after=0), "ModelStalled", 504),
}


@pytest.fixture(scope="module")
def impatient_pair(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A small pair whose chat_shell waits a few seconds for a frame: longer than a busy machine takes to send one."""
    options = PairOptions(chat_shell={"CHAT_SHELL_MODEL_IDLE_TIMEOUT_SECONDS": "3"})
    return start_pair(launch_for_module, tmp_path_factory.mktemp("impatient"), options)


@pytest.fixture
async def own_provider(impatient_pair: Pair) -> AsyncIterator[FakeModelControl]:
    async with impatient_pair.fresh_model() as control:
        yield control


@pytest.mark.parametrize("name", CASES)
async def test_a_fault_is_typed_and_kept(pair: Pair, model: FakeModelControl, name: str) -> None:
    await check(pair, model, CASES[name])


@pytest.mark.parametrize("name", STALLS)
async def test_a_stall_is_typed_and_kept(impatient_pair: Pair, own_provider: FakeModelControl, name: str) -> None:
    await check(impatient_pair, own_provider, STALLS[name])
    await own_provider.wait_closed(0)


async def test_an_answer_without_an_end_is_cut_and_its_connection_closed(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    endless = Reply(text=("on and on " * 2_000,), fault=Fault.ENDLESS)
    await small_model.script(endless, Reply(text=("Fine.",)))
    async with bare_client(small_pair, "faults") as client:
        conversation = await new_conversation(client)
        cut = await turn(client, QUESTION, conversation=conversation)
        await small_model.wait_closed(0)
        answered = await turn(client, "Again", conversation=conversation)
    assert (cut["status"], cut["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert len(text_of(cut)) == MAX_ANSWER_CHARACTERS
    assert text_of(answered) == "Fine."
    last_request = (await small_model.requests())[-1]
    assert messages_in(last_request)[-2] == {"role": "user", "content": COMPACTED}


EDGES = (
    rb'{"choices":[{"delta":{"content":"a\u0000b\ud83d"}}]}',
    rb'{"choices":[{"delta":{"content":"\ude00c\ud83d."}}]}',
    b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"","arguments":"{}"}}]}}]}',
    b'{"choices":[{"delta":null,"finish_reason":"a new reason"}]}',
    b'{"choices":[],"usage":{"prompt_tokens":1e400,"completion_tokens":2}}',
    b"[DONE]",
)
LEFT_OUT = (
    "characters that no text can hold; counts of tokens that are no counts; "
    "tool calls without a name or of an unknown shape"
)


async def test_what_no_value_can_hold_is_left_out_and_said(pair: Pair, model: FakeModelControl) -> None:
    await model.script(frames(*EDGES), frames(*EDGES), Reply(text=("Fine.",)))
    async with bare_client(pair, "edges") as client:
        events = await streamed_turn(client, QUESTION, metadata={"mine": "1"})
        ended = events[-1]["response"]
        stored = (await client.get(f"/v1/responses/{ended['id']}")).json()
        body = {"messages": [{"role": "user", "content": QUESTION}], "store": False}
        completion = (await client.post("/v1/chat/completions", json=body)).json()
        after = await turn(client, "Again", previous_response_id=ended["id"])

    assert ended == stored
    assert (stored["status"], text_of(stored)) == ("completed", "a\ufffdb😀c\ufffd.")
    assert stored["metadata"] == {"mine": "1", "ballast_left_out": LEFT_OUT}
    assert completion["choices"][0]["message"]["content"] == "a\ufffdb😀c\ufffd."
    assert completion["metadata"] == {"ballast_left_out": LEFT_OUT}
    assert (text_of(after), after["metadata"]) == ("Fine.", {})


async def check(pair: Pair, provider: FakeModelControl, case: Case) -> None:
    """Run a fault in a stream and in a plain call, and look at all that is left of both."""
    await provider.script(case.reply, case.reply, Reply(text=("Fine.",)))
    async with bare_client(pair, "faults") as client:
        conversation = await new_conversation(client)
        events = await streamed_turn(client, QUESTION, conversation=conversation)
        plain = await client.post("/v1/responses", json={"input": QUESTION, "conversation": conversation})
        answered = await turn(client, "Again", conversation=conversation)
        stored = (await client.get(f"/v1/responses/{events[0]['response']['id']}")).json()
        items = await items_of(client, conversation)
    check_stream(events, stored, case)
    check_plain(plain.json()["error"], case)
    assert (plain.status_code, plain.headers["x-should-retry"]) == (case.status, "false")
    assert_nothing_secret(pair, orjson.dumps([events, plain.json(), stored, items]).decode())
    assert answered["status"] == "completed"
    said = [item["content"][0]["text"] for item in items if item["role"] == "assistant"]
    assert said == [*[case.said] * (2 if case.said else 0), "Fine."]
    last = (await provider.requests())[-1]
    kept = ["user", "assistant"] * 2 if case.said else []
    assert [message["role"] for message in messages_in(last)] == ["system", *kept, "user"]


def check_stream(events: list[Body], stored: Body, case: Case) -> None:
    error, failed = events[-2:]
    assert (error["type"], failed["type"]) == ("error", "response.failed")
    assert error["error"]["type"] == case.kind
    assert error["code"] == error["error"]["code"] == case.code
    assert failed["response"] == stored
    assert (stored["status"], stored["incomplete_details"]) == ("failed", None)
    assert (stored["error"]["type"], stored["error"]["code"]) == (case.kind, STORED.get(case.code, case.code))
    assert case.code not in STORED or case.code in stored["error"]["message"]
    assert text_of(stored) == case.said
    assert [item["status"] for item in stored["output"]] == ["incomplete"] * bool(case.said)


def check_plain(error: Body, case: Case) -> None:
    assert set(error) == {"message", "type", "param", "code"}
    by_code = {"insufficient_quota": "insufficient_quota"}
    by_status = {429: "rate_limit_error", 400: "invalid_request_error"}
    assert error["type"] == by_code.get(case.code, by_status.get(case.status, "server_error"))
    assert error["code"] == case.code


def assert_nothing_secret(pair: Pair, text: str) -> None:
    found = [words for words in (RAW_WORDS, CREDENTIAL, pair.model_url, pair.model_url.split("/")[2]) if words in text]
    assert found == []


@pytest.mark.parametrize("reply", [refusal(500), refusal(503, **{"retry-after": "0"}), refusal(429)])
async def test_a_passing_fault_is_tried_again_with_the_same_bytes(
    small_pair: Pair, small_model: FakeModelControl, reply: Reply
) -> None:
    await small_model.script(reply, Reply(text=("Here.",)))
    async with bare_client(small_pair, "faults") as client:
        response = await turn(client, "Are you there?")
    assert (response["status"], text_of(response)) == ("completed", "Here.")
    one, two = await small_model.requests()
    assert one.body == two.body


async def test_what_has_begun_is_never_tried_again(small_pair: Pair, small_model: FakeModelControl) -> None:
    await small_model.script(Reply(text=("Half",), fault=Fault.CUT), Reply(text=("Whole",)))
    async with bare_client(small_pair, "faults") as client:
        events = await streamed_turn(client, "Go")
    assert events[-1]["response"]["error"]["type"] == "ModelStreamCut"
    assert len(await small_model.requests()) == 1


async def test_nothing_secret_is_in_logs_metrics_and_database(
    impatient_pair: Pair, own_provider: FakeModelControl
) -> None:
    """Last of those that need the provider: then it is gone, which is a fault of its own."""
    leaky = (CASES[name].reply for name in ("401", "400", "overflow", "page", "no frames", "error frame"))
    async with bare_client(impatient_pair, "secrets") as client:
        for reply in leaky:
            await own_provider.script(reply)
            assert (await client.post("/v1/responses", json={"input": QUESTION})).status_code >= 400
        impatient_pair.model_server.kill()
        down = await streamed_turn(client, QUESTION)
        metrics, of_chat_shell = await impatient_pair.metrics()
    assert down[-1]["response"]["error"]["type"] == "ModelUnavailable"
    assert_nothing_secret(impatient_pair, orjson.dumps(down).decode())
    logs = impatient_pair.backend.log() + impatient_pair.chat_shell.log()
    assert "Turn finished" in logs
    # Which host failed is for the operator, who alone reads this line.
    assert f'"host": "{impatient_pair.model_url.split("/")[2]}"' in logs
    logs = re.sub(r'"host": "[^"]*"', "", logs)
    for text in (logs, metrics, of_chat_shell, database(impatient_pair.backend.spec.directory)):
        assert_nothing_secret(impatient_pair, text)
    for text in (logs, metrics, of_chat_shell):
        assert QUESTION not in text
        assert impatient_pair.key("secrets") not in text
    assert 'ballast_turns_total{outcome="failed"}' in metrics


def database(directory: Path) -> str:
    """Return all that the database keeps on the disk."""
    files = sorted((directory / "var").glob("ballast.db*"))
    assert files
    return "".join(file.read_bytes().decode("latin-1") for file in files)
