"""What of a request is not known is passed over and named, or refused where the operator wants that."""

import asyncio
from typing import Any, cast

import orjson
import pytest

from backend.conversations.domain.passed_over import IGNORED_KEY, MAX_TEXT, PassedOver
from backend.foundation.domain.json_objects import result_of, scan_json
from backend.openai_api.domain.chat_request import ChatTurn, chat_request_cooperatively
from backend.openai_api.domain.requested_settings import MAX_EXTRA_BYTES, model_parameters, name_untaken
from backend.openai_api.domain.turn_request import TurnRequest, turn_request_cooperatively
from backend.turns.domain.input_requests import socket_request_cooperatively
from shared.errors import InvalidRequest
from shared.models.events import ModelCard
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import ADA
from tests.fakes.openai_types import check_completion, check_response
from tests.fakes.parsed_requests import parse_turn_request
from tests.fakes.served_turns import serve_api

WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
CODEX: dict[str, Any] = {
    "instructions": "You are a coding agent.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Ask first."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List files."}]},
        {"type": "reasoning", "encrypted_content": "abc"},
        {"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": {"type": "exec"}},
        {"type": "local_shell_call_output", "id": "c1", "output": "a.txt"},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a.txt"}],
            "end_turn": True,
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
    ],
    "tools": [
        WEATHER,
        {"type": "local_shell"},
        {"type": "namespace", "name": "n", "tools": []},
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto", "context": "all"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0b9d5c6e-0000-4000-8000-000000000000",
    "client_metadata": {"x-codex": "1"},
    "text": {"verbosity": "low"},
}


CARD = ModelCard(name="m", context_window_tokens=1000, max_output_tokens=100, extra_parameters=("top_k", "min_p"))


def lenient(body: Any) -> tuple[TurnRequest, str]:
    noted = PassedOver()
    request = result_of(turn_request_cooperatively(scan_json(orjson.dumps(body)), noted))
    return name_untaken(request, CARD), noted.text


def lenient_chat(body: Any) -> tuple[ChatTurn, str]:
    noted = PassedOver()
    return result_of(chat_request_cooperatively(scan_json(orjson.dumps(body)), noted)), noted.text


async def test_a_coding_client_starts_and_goes_on() -> None:
    async with serve_api(answer("One.")) as api:
        answered = await api.http.post("/v1/responses", json=CODEX)
        assert answered.status_code == 200, answered.text
        named = answered.headers["x-ballast-ignored"].split(", ")
        assert set(named) == {
            "client_metadata",
            "reasoning.context",
            *("tools[1]", "tools[2]", "tools[3]"),
            *("input[3]", "input[4]", "input[5]", "input[6].end_turn"),
        }
        check_response(answered.json())
        assert answered.json()["metadata"] == {IGNORED_KEY: ", ".join(named)}
        assert [tool.name for tool in api.turns.sent[0].tools] == ["weather"]
        assert [message.role for message in api.turns.sent[0].history] == ["user", "assistant"]


async def test_chat_completions_name_what_they_pass_over() -> None:
    async with serve_api(answer("One.")) as api:
        said = {"role": "assistant", "content": "a", "thoughts": "b"}
        function = {"name": "f", "parameters": {"type": "object", "x": 1}, "deferred": True}
        body = {
            "messages": [{"role": "user", "content": "Hi"}, said, {"role": "user", "content": "Go on"}],
            "tools": [{"type": "function", "function": function}, {"type": "web_search"}],
            "tool_choice": {"type": "web_search"},
            "stream_options": {"include_usage": True, "y": 1},
            "top_a": 4,
            "logit_bias": {},
        }
        answered = await api.http.post("/v1/chat/completions", json={**body, "user": "u"})
        names = "stream_options.y, tools[0].function.deferred, tools[1], tool_choice, top_a, messages[1].thoughts"
        assert sorted(answered.headers["x-ballast-ignored"].split(", ")) == sorted(names.split(", "))
        check_completion(answered.json())
        assert answered.json()["metadata"][IGNORED_KEY] == answered.headers["x-ballast-ignored"]
        assert api.turns.sent[0].parameters.tool_choice == "auto"
        stored = await api.http.get(f"/v1/responses/{answered.json()['id']}")
        assert stored.json()["user"] == "u"


async def test_nothing_is_said_where_nothing_is_passed_over() -> None:
    async with serve_api(answer("One.")) as api:
        answered = await api.http.post("/v1/responses", json={"input": "Hi", "foo": None})
        assert "x-ballast-ignored" not in answered.headers
        assert answered.json()["metadata"] == {}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"temperature": "warm", "new": 1}, "temperature"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["kb_1"], "only": "x"}]}, "tools[0].only"),
        ({"tools": [{"type": "mcp", "server_label": "s", "only": "x"}]}, "tools[0].only"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"tools": [{"name": "f"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "allowed_tools", "mode": "auto"}}, "tool_choice.type"),
        ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0].type"),
        ({"input": [{"role": "user", "content": "a"}, {"type": "web_search_call"}, {"type": 5}]}, "input[2].type"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ],
)
def test_what_is_known_stays_checked_and_what_narrows_a_turn_is_never_passed_over(body: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        lenient({"input": "Hi", **body})
    assert caught.value.param == param


def test_a_strict_operator_refuses_what_is_passed_over_elsewhere() -> None:
    for body in ({"input": "Hi", "new": 1}, {"input": "Hi", "tools": [{"type": "web_search"}]}):
        with pytest.raises(InvalidRequest, match=r"^new: |^tools\[0\]\.type: "):
            name_untaken(parse_turn_request(orjson.dumps(body)), CARD)
        assert lenient(body)[1]


def test_names_fit_a_header_and_a_value_of_metadata() -> None:
    odd = {f"n{number}\r\n, é": 1 for number in range(200)}
    request, text = lenient({"input": "Hi", **odd})
    assert len(text) <= MAX_TEXT
    assert text.isascii()
    assert text.isprintable()
    assert text.startswith("n0?????, n1?????, ")
    assert int(text.rpartition(" and ")[2].split()[0]) + text.count("?????") == 200
    assert (request.metadata or {})[IGNORED_KEY] == text
    assert lenient({"input": "Hi", "x" * 500: 1})[1] == "x" * 80


def test_full_metadata_stay_the_clients_own() -> None:
    full = {str(number): "x" for number in range(16)}
    request, text = lenient({"input": "Hi", "new": 1, "metadata": full})
    assert (request.metadata, text) == (full, "new")


def test_other_tools_keep_the_numbers_of_those_behind_them() -> None:
    tools = [{"type": "web_search"}, {"type": "function", "name": "knowledge_base_x"}]
    with pytest.raises(InvalidRequest) as caught:
        lenient({"input": "Hi", "tools": tools})
    assert caught.value.param == "tools[1].name"
    chat = {"messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "web_search"}]}
    assert lenient_chat(chat)[1] == "tools[0]"


async def test_a_request_that_waits_keeps_what_was_said_of_it() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("One.")], answer("Two.")) as api:
        first = await api.turns.start(ADA, input="Hi")
        asked: Any = {"input": "Go on", "conversation": first.response.conversation_id, "background": True}
        more: Any = {"if_running": "queue", "tools": [{"type": "x"}], "new": 1}
        answered = (await api.http.post("/v1/responses", json={**asked, **more})).json()
        assert (answered["status"], answered["metadata"]) == ("queued", {IGNORED_KEY: "tools[0], new"})
        gate.set()
        await first.wait_until_ended()
        while api.turns.state.waiting:
            await api.turns.services.waiting.step()
        found = await api.turns.services.responses.find(ADA, answered["id"])
        ended = await api.turns.services.responses.wait_until_ended(found)
        assert (ended.status, ended.body["metadata"]) == ("completed", answered["metadata"])


EXTRA: Any = {"top_k": 5, "chat_template_kwargs": {"enable_thinking": None, "x": [1, {"y": 2.5}]}, "min_p": "a"}


@pytest.mark.parametrize("api", ["/v1/responses", "/v1/chat/completions"])
async def test_what_the_model_takes_goes_to_it_and_the_rest_is_named(api: str) -> None:
    hi: Any = {"input": "Hi"} if api.endswith("responses") else {"messages": [{"role": "user", "content": "Hi"}]}
    async with serve_api(answer("One.")) as opened:
        cast(Any, opened.turns.chat_shell).extra_parameters = ("top_k", "chat_template_kwargs", "logit_bias")
        answered = await opened.http.post(api, json={**hi, **EXTRA, "logit_bias": {"5": 1}, "input_x": 1})
        assert answered.status_code == 200, answered.text
        assert answered.headers["x-ballast-ignored"] == "min_p, input_x"
        assert answered.json()["metadata"] == {IGNORED_KEY: "min_p, input_x"}
        taken = {name: EXTRA[name] for name in ("top_k", "chat_template_kwargs")} | {"logit_bias": {"5": 1}}
        assert opened.turns.sent[0].parameters.extra == taken


def test_a_member_with_the_name_of_a_field_of_the_other_api_sets_no_field() -> None:
    chat = {"messages": [{"role": "user", "content": "Hi"}], "conversation": "conv_1", "instructions": 5}
    request = lenient_chat(chat)[0].request
    assert (request.conversation, request.instructions) == (None, None)
    assert request.extra_parameters == {"conversation": "conv_1", "instructions": 5}


def test_a_strict_operator_lets_pass_what_the_model_takes() -> None:
    strict = parse_turn_request(orjson.dumps({"input": "Hi", "top_k": 3}))
    assert model_parameters(name_untaken(strict, CARD), CARD).extra == {"top_k": 3}


def test_a_message_over_a_socket_names_what_its_model_does_not_take() -> None:
    message = {"type": "response.create", "input": "Hi", "top_k": 3, "top_a": 4, "metadata": {"a": "b"}}
    noted = PassedOver()
    request = result_of(socket_request_cooperatively(scan_json(orjson.dumps(message)), noted))
    named = name_untaken(request, CARD)
    assert (named.metadata, noted.text) == ({"a": "b", IGNORED_KEY: "top_a"}, "top_a")
    assert model_parameters(named, CARD).extra == {"top_k": 3}


def test_what_nobody_checks_is_bounded() -> None:
    request, _ = lenient({"input": "Hi", "min_p": 1, "top_k": "x" * MAX_EXTRA_BYTES})
    with pytest.raises(InvalidRequest) as caught:
        model_parameters(request, CARD)
    assert caught.value.param == "min_p"


async def test_several_models_name_together_what_one_of_them_does_not_take() -> None:
    async with serve_api(answer("One."), answer("Two.")) as api:
        cast(Any, api.turns.chat_shell).extra_parameters = ("top_k",)
        body = {"input": "Hi", "models": ["demo-model", "vendor/large"], "top_k": 5, "top_a": 1}
        answered = await api.http.post("/v1/responses", json=body)
        assert answered.headers["x-ballast-ignored"] == "top_a"
        assert answered.json()["metadata"] == {IGNORED_KEY: "top_a"}
        assert [request.parameters.extra for request in api.turns.sent] == [{"top_k": 5}] * 2


async def test_a_request_that_waits_keeps_what_its_model_takes() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("One.")], answer("Two.")) as api:
        cast(Any, api.turns.chat_shell).extra_parameters = ("top_k", "chat_template_kwargs")
        first = await api.turns.start(ADA, input="Hi")
        asked: Any = {"input": "Go on", "conversation": first.response.conversation_id, "background": True}
        answered = (await api.http.post("/v1/responses", json={**asked, **EXTRA, "if_running": "queue"})).json()
        assert (answered["status"], answered["metadata"]) == ("queued", {IGNORED_KEY: "min_p"})
        gate.set()
        await first.wait_until_ended()
        while api.turns.state.waiting:
            await api.turns.services.waiting.step()
        found = await api.turns.services.responses.find(ADA, answered["id"])
        ended = await api.turns.services.responses.wait_until_ended(found)
        assert ended.body["metadata"] == {IGNORED_KEY: "min_p"}
        assert api.turns.sent[1].parameters.extra == {name: EXTRA[name] for name in ("top_k", "chat_template_kwargs")}
