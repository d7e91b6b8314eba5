"""`ballast cache verify` finds where calls of a log do not extend each other; `export` writes a log that passes."""

import ast
import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.ballast_api import FakeBallast, answer, page
from tests.unit.cli.conftest import Command

Body = dict[str, Any]
WORDS = [f"word{number}" for number in range(500)]
TOOLS: list[Body] = [
    {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": {"type": "object"}}}
    for name in ("alpha", "beta", "gamma")
]


def text(dice: random.Random, words: int) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(words))


def conversation(dice: random.Random, turns: int, system: str) -> Iterator[Body]:
    messages: list[Body] = []
    for _ in range(turns):
        messages = [*messages, {"role": "user", "content": text(dice, 12)}]
        yield {
            "model": "m",
            "messages": [{"role": "system", "content": system}, *deepcopy(messages)],
            "tools": deepcopy(TOOLS),
        }
        messages = [*messages, {"role": "assistant", "content": text(dice, 30)}]


def calls(*, seed: int = 7, conversations: int = 12) -> list[Body]:
    """Write some conversations of five turns with one system prompt, each call after another of a random one."""
    dice = random.Random(seed)
    system = "You help. " + text(dice, 200)
    open_ones = [conversation(dice, 5, system) for _ in range(conversations)]
    written: list[Body] = []
    while open_ones:
        chosen = dice.choice(open_ones)
        if (call := next(chosen, None)) is None:
            open_ones.remove(chosen)
        else:
            written.append(call)
    return written


def plant_clock(bodies: list[Body]) -> None:
    for number, body in enumerate(bodies):
        body["messages"][0]["content"] += f" It is 12:{number % 60:02d}."


def plant_tool_order(bodies: list[Body]) -> None:
    for body in bodies[1::2]:
        body["tools"].reverse()


def plain(body: Body) -> str:
    return json.dumps(body)


def gateway(body: Body) -> str:
    """Write a call as LiteLLM's standard payload has it: the messages at the top, the tools among the parameters."""
    parameters = {"stream": True, "tools": body["tools"]}
    answered = {"choices": [{"message": {"role": "assistant", "content": "x", "tool_calls": None}}]}
    told = {"id": "c", "trace_id": "t", "call_type": "acompletion", "response": answered}
    return json.dumps({**told, "messages": body["messages"], "model_parameters": parameters})


def gateway_debug(body: Body) -> str:
    """Write a call as the line of LiteLLM's debug log that shows what is posted: as Python writes it."""
    return f"-d '{ {'model': 'm', 'messages': body['messages'], 'tools': body['tools']} }'"


def engine(body: Body) -> str:
    """Write a call as vLLM's request log does: the prompt that the chat template has rendered."""
    tools = "\n".join(json.dumps(tool) for tool in body["tools"])
    system, *rest = body["messages"]
    prompt = f"<|im_start|>system\n{system['content']}\n\n# Tools\n<tools>\n{tools}\n</tools><|im_end|>\n"
    prompt += "".join(f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in rest)
    prompt += "<|im_start|>assistant\n"
    return (
        f"(APIServer pid=1) DEBUG 02-13 11:33:33 [logger.py:49] Request chatcmpl-1 details: prompt: {prompt!r}, "
        "prompt_token_ids: None, prompt_embeds shape: None.\n"
        "(APIServer pid=1) INFO:     10.0.0.1:1 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK"
    )  # fmt: skip


def engine_json(body: Body) -> str:
    line = engine(body).partition("\n")[0].partition("] ")[2]
    return json.dumps({"level": "DEBUG", "message": line})


def engine_tokens(body: Body) -> str:
    """Write a call as vLLM does that has got tokens: here a token is a byte."""
    prompt = ast.literal_eval(engine(body).partition("prompt: ")[2].partition(", prompt_token_ids")[0])
    tokens = list(prompt.encode())
    return f"Request chatcmpl-1 details: prompt: None, prompt_token_ids: {tokens}, prompt_embeds shape: None."


FORMS: list[Callable[[Body], str]] = [plain, gateway, gateway_debug, engine, engine_json]
RENDERED = (engine, engine_json)


def write(folder: Path, bodies: list[Body], form: Callable[[Body], str]) -> str:
    log = folder / "requests.log"
    log.write_text("\n".join(["2026-02-13 a line of another kind", *map(form, bodies)]))
    return str(log)


@pytest.mark.parametrize("form", [*FORMS, engine_tokens])
def test_calls_that_extend_each_other_pass(command: Command, tmp_path: Path, form: Callable[[Body], str]) -> None:
    ran = command("cache", "verify", write(tmp_path, calls(), form), "--json")
    (report,) = ran.lines_of_json
    assert (ran.exit_code, report["conversations"], report["paths"], report["kept_share"]) == (0, 12, {}, 1.0)
    assert report["calls"] == {"begins": 12, "extends": 48}


@pytest.mark.parametrize("form", FORMS)
def test_a_clock_in_the_system_prompt_is_found_at_its_place(
    command: Command, tmp_path: Path, form: Callable[[Body], str]
) -> None:
    bodies = calls()
    length = len(bodies[0]["messages"][0]["content"])
    plant_clock(bodies)
    ran = command("cache", "verify", write(tmp_path, bodies, form), "--json")
    (report,) = ran.lines_of_json
    assert (ran.exit_code, report["calls"]) == (1, {"begins": 12, "differs": 48})
    path = "prompt" if form in RENDERED else "messages[0]"
    (first, *_) = report["examples"][path]
    start = len("<|im_start|>system\n") if form in RENDERED else 0
    assert start + length + len(" It is 12:") <= first["character"] <= start + length + len(" It is 12:00")
    assert first["path"] == ("prompt" if form in RENDERED else "messages[0].content")


@pytest.mark.parametrize("plant", [plant_clock, plant_tool_order])
def test_what_moves_is_found_in_tokens_too(
    command: Command, tmp_path: Path, plant: Callable[[list[Body]], None]
) -> None:
    bodies = calls()
    plant(bodies)
    ran = command("cache", "verify", write(tmp_path, bodies, engine_tokens), "--json")
    (report,) = ran.lines_of_json
    system = len(f"<|im_start|>system\n{calls()[0]['messages'][0]['content']}")
    places = [int(path.partition("[")[2].rstrip("]")) for path in report["paths"]]
    assert ran.exit_code == 1
    assert all(system - 64 <= place <= system + 400 for place in places)


@pytest.mark.parametrize("form", FORMS)
def test_another_order_of_tools_is_found(command: Command, tmp_path: Path, form: Callable[[Body], str]) -> None:
    bodies = calls()
    plant_tool_order(bodies)
    ran = command("cache", "verify", write(tmp_path, bodies, form), "--json")
    (report,) = ran.lines_of_json
    assert ran.exit_code == 1
    if form in RENDERED:
        (first, *_) = report["examples"]["prompt"]
        tools_begin = len(f"<|im_start|>system\n{bodies[0]['messages'][0]['content']}\n\n# Tools\n<tools>\n")
        assert tools_begin < first["character"] < tools_begin + len(json.dumps(TOOLS[0]))
    else:
        (first, *_) = report["examples"]["tools[0]"]
        assert (first["path"], first["says"]) == ("tools[0].function.name", "the same tools stand in another order")


def test_words_at_the_end_that_disappear_are_found(command: Command, tmp_path: Path) -> None:
    bodies = calls()
    for body in bodies:
        body["messages"].append({"role": "user", "content": "Remember: be brief."})
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert report["calls"] == {"begins": 12, "differs": 48}
    assert report["paths"] == {f"messages[{2 * turn}]": 12 for turn in range(1, 5)}


def test_a_changed_earlier_answer_is_no_new_conversation(command: Command, tmp_path: Path) -> None:
    (*_, newest) = bodies = list(conversation(random.Random(3), 5, "You help."))
    newest["messages"][4]["content"] = newest["messages"][4]["content"].upper()
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    (only,) = report["examples"]["messages[4]"]
    assert (only["path"], only["character"], only["line"], only["earlier_line"]) == ("messages[4].content", 0, 6, 5)


def test_an_edited_question_is_a_branch_and_no_fault(command: Command, tmp_path: Path) -> None:
    bodies = list(conversation(random.Random(3), 3, "You help."))
    edited = deepcopy(bodies[1])
    edited["messages"][-1]["content"] = "Something else is asked in its place."
    (report,) = command("cache", "verify", write(tmp_path, [*bodies, edited], plain), "--json").lines_of_json
    assert report["calls"] == {"begins": 1, "extends": 2, "branches": 1}


def test_an_early_answer_that_is_asked_for_again_is_no_fault(command: Command, tmp_path: Path) -> None:
    bodies = list(conversation(random.Random(3), 8, "You help."))
    edited = deepcopy(bodies[6])
    edited["messages"][-1]["content"] = "Something else is asked in its place."
    log = write(tmp_path, [*bodies, bodies[5], edited, bodies[7]], plain)
    (report,) = command("cache", "verify", log, "--json").lines_of_json
    assert (report["calls"], report["paths"]) == ({"begins": 1, "extends": 8, "branches": 2}, {})


def test_conversations_that_begin_with_the_same_examples_are_no_fault(command: Command, tmp_path: Path) -> None:
    examples = [{"role": role, "content": f"example {at}"} for at in range(5) for role in ("user", "assistant")]
    rounds = zip(*(conversation(random.Random(seed), 3, "You help.") for seed in range(6)), strict=True)
    bodies = [body for calls_of_round in rounds for body in calls_of_round]
    for body in bodies:
        body["messages"][1:1] = examples
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert (report["calls"], report["paths"]) == ({"begins": 1, "branches": 17}, {})


def test_a_conversation_goes_on_after_another_agent_has_read_it(command: Command, tmp_path: Path) -> None:
    bodies = list(conversation(random.Random(3), 6, "You help."))
    titled = deepcopy(bodies[3])
    titled["messages"][0]["content"] = "You write titles."
    titled["messages"] += [{"role": "assistant", "content": "So."}, {"role": "user", "content": "A title for this?"}]
    log = write(tmp_path, [*bodies[:4], titled, *bodies[4:]], plain)
    (report,) = command("cache", "verify", log, "--json").lines_of_json
    assert report["calls"] == {"begins": 1, "extends": 4, "differs": 1, "branches": 1}


def test_titles_that_another_program_writes_are_no_fault(command: Command, tmp_path: Path) -> None:
    bodies: list[Body] = []
    for seed in range(3):
        first, *rest = conversation(random.Random(seed), 3, "You help. " * 20)
        asked = [*first["messages"][1:], {"role": "user", "content": "A title for this?"}]
        bodies += [first, {"messages": [{"role": "system", "content": "You write titles."}, *asked]}, *rest]
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert (report["paths"], report["kept_share"]) == ({}, 1.0)
    assert (report["calls"]["begins"], report["calls"]["extends"] + report["calls"]["branches"]) == (3, 9)


def test_other_passages_in_each_system_prompt_are_found(command: Command, tmp_path: Path) -> None:
    bodies = [body for seed in range(3) for body in conversation(random.Random(seed), 3, "")]
    for seed, body in enumerate(bodies):
        body["messages"][0]["content"] = "You help. " + text(random.Random(seed), 100)
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert report["paths"] == {"messages[0]": 6}


def test_tools_that_come_and_go_are_found(command: Command, tmp_path: Path) -> None:
    bodies = [body for seed in range(3) for body in conversation(random.Random(seed), 4, "You help.")]
    for body in bodies[1::2]:
        del body["tools"][1:]
    assert command("cache", "verify", write(tmp_path, bodies, plain)).exit_code == 1


def test_what_another_program_reads_first_is_another_conversation(command: Command, tmp_path: Path) -> None:
    bodies = list(conversation(random.Random(3), 4, "You help."))
    guarded = deepcopy(bodies)
    for body in guarded:
        body["messages"][0]["content"] = "Is this harmless?"
    log = write(tmp_path, [body for pair in zip(guarded, bodies, strict=True) for body in pair], plain)
    (report,) = command("cache", "verify", log, "--json").lines_of_json
    assert (report["calls"], report["conversations"]) == ({"begins": 2, "extends": 6}, 2)


def test_results_that_are_forgotten_in_the_next_turn_are_found(command: Command, tmp_path: Path) -> None:
    bodies = list(conversation(random.Random(3), 4, "You help."))
    last = deepcopy(bodies[2])
    asked = {"id": "c1", "type": "function", "function": {"name": "alpha", "arguments": "{}"}}
    last["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]
    log = write(tmp_path, [*bodies[:3], last, bodies[3]], plain)
    assert command("cache", "verify", log, "--json").lines_of_json[0]["paths"] == {"messages[6]": 1}


def anthropic(body: Body, *, clock: str = "") -> Body:
    """Write a call as a body of Anthropic's API, marked as its clients do: at the end, which moves with each call."""
    mark = {"cache_control": {"type": "ephemeral"}}
    system, *rest, last = body["messages"]
    marked = {"role": last["role"], "content": [{"type": "text", "text": last["content"], **mark}]}
    blocks = [{"type": "text", "text": system["content"]}, {"type": "text", "text": f"Be kind. {clock}", **mark}]
    tools: list[Body] = [{"name": tool["function"]["name"], "input_schema": {}} for tool in body["tools"]]
    return {"system": blocks, "messages": [*rest, marked], "tools": tools}


def test_marks_that_move_are_no_part_of_what_is_sent(command: Command, tmp_path: Path) -> None:
    bodies = [anthropic(body) for body in calls()]
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert (report["calls"], report["kept_share"]) == ({"begins": 12, "extends": 48}, 1.0)


def test_a_clock_in_the_system_field_is_found(command: Command, tmp_path: Path) -> None:
    bodies = [anthropic(body, clock=f"12:{at:02d}") for at, body in enumerate(calls())]
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert report["calls"] == {"begins": 12, "differs": 48}
    first = report["examples"]["system[1]"][0]
    assert (first["path"], first["character"]) == ("system[1].text", len("Be kind. 12:0"))


def gateway_responses(body: Body) -> str:
    """Write a call of Responses as LiteLLM's standard payload has it: its instructions among the parameters."""
    messages = [{"role": "user", "content": body["input"]}]
    parameters = {"instructions": body["instructions"]}
    return json.dumps({"call_type": "aresponses", "messages": messages, "model_parameters": parameters})


@pytest.mark.parametrize("form", [plain, gateway_responses])
def test_a_clock_beside_a_question_that_is_a_bare_text_is_found(
    command: Command, tmp_path: Path, form: Callable[[Body], str]
) -> None:
    bodies = [{"model": "m", "instructions": f"You help. 12:0{at}", "input": f"Question {at}?"} for at in range(5)]
    (report,) = command("cache", "verify", write(tmp_path, bodies, form), "--json").lines_of_json
    assert report["paths"] == {"instructions of different conversations": 4}


def test_texts_that_are_embedded_are_no_conversation(command: Command, tmp_path: Path) -> None:
    bodies = [{"model": "embedder", "input": "\n".join(WORDS[at : at + 20])} for at in range(0, 60, 3)]
    assert command("cache", "verify", write(tmp_path, bodies, plain)).exit_code == 0


def test_a_clock_of_one_of_two_programs_is_found(command: Command, tmp_path: Path) -> None:
    helping = [next(conversation(random.Random(seed), 1, "You help. " * 20)) for seed in range(9)]
    plant_clock(helping)
    translating = [next(conversation(random.Random(-seed), 1, "Translate all. " * 20)) for seed in range(9)]
    bodies = [body for pair in zip(helping, translating, strict=True) for body in pair]
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert report["paths"] == {"messages[0].content of different conversations": 8}


def test_a_few_tenants_are_no_clock(command: Command, tmp_path: Path) -> None:
    systems = [f"You help {tenant}. " + "Well. " * 40 for tenant in ("Ann", "Ben")] * 2
    bodies = [next(conversation(random.Random(seed), 1, system)) for seed, system in enumerate(systems)]
    assert command("cache", "verify", write(tmp_path, bodies, plain)).exit_code == 0


def test_a_declared_reset_is_named(command: Command, tmp_path: Path) -> None:
    bodies = list(conversation(random.Random(3), 2, "You help."))
    bodies[1]["messages"][0]["content"] = "You help otherwise."
    declared = [{**body, "conversation": "conv_1", "reset": None} for body in bodies]
    log = write(tmp_path, declared, plain)
    assert command("cache", "verify", log).exit_code == 1
    declared[1]["reset"] = "instructions_changed"
    ran = command("cache", "verify", write(tmp_path, declared, plain))
    assert ran.exit_code == 0
    assert "1 says that a new prefix begins: instructions_changed" in ran.out


def test_a_clock_is_found_where_each_conversation_has_one_call(command: Command, tmp_path: Path) -> None:
    bodies = [next(conversation(random.Random(seed), 1, "You help. " * 20)) for seed in range(5)]
    plant_clock(bodies)
    log = write(tmp_path, bodies, plain)
    (report,) = command("cache", "verify", log, "--json").lines_of_json
    assert report["paths"] == {"messages[0].content of different conversations": 4}
    assert (report["moved"], report["kept_share"] < 0.9) == (4, True)
    ran = command("cache", "verify", log)
    assert "4 conversations begin with other tools or instructions than the one before" in ran.out
    assert "4 calls differ" in ran.err


def test_conversations_of_one_call_keep_no_share(command: Command, tmp_path: Path) -> None:
    bodies = [next(conversation(random.Random(3), 1, "You help."))]
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert (report["calls"], report["kept_share"]) == ({"begins": 1}, None)


def test_another_model_in_a_conversation_reads_nothing_of_the_cache(command: Command, tmp_path: Path) -> None:
    bodies = list(conversation(random.Random(3), 4, "You help."))
    for number, body in enumerate(bodies):
        body["model"] = f"m-{number}"
    ran = command("cache", "verify", write(tmp_path, bodies, plain), "--json")
    (report,) = ran.lines_of_json
    assert (ran.exit_code, report["paths"], report["kept_share"]) == (1, {"model": 3}, 0.0)


def test_an_agent_whose_instructions_are_alike_is_no_clock(command: Command, tmp_path: Path) -> None:
    bodies = [next(conversation(random.Random(seed), 1, "You help. " * 20)) for seed in range(12)]
    bodies[5]["messages"][0]["content"] = f"Speak to nurses.\n\n{bodies[5]['messages'][0]['content']}"
    assert command("cache", "verify", write(tmp_path, bodies, plain)).exit_code == 0
    plant_clock(bodies[:6])
    assert command("cache", "verify", write(tmp_path, bodies, plain)).exit_code == 1


def test_other_instructions_beside_the_same_tools_are_another_program(command: Command, tmp_path: Path) -> None:
    bodies = [next(conversation(random.Random(seed), 1, "You help. " * 20)) for seed in range(2)]
    bodies[1]["messages"][0]["content"] = "Translate what comes."
    assert command("cache", "verify", write(tmp_path, bodies, plain)).exit_code == 0


def test_an_array_and_a_trace_of_hashes_are_read(command: Command, tmp_path: Path) -> None:
    array = tmp_path / "array.json"
    array.write_text(json.dumps(calls(), indent=1))
    assert command("cache", "verify", str(array)).exit_code == 0
    trace = tmp_path / "trace.jsonl"
    rows = [[1, 2, 3], [1, 2, 3, 4], [1, 9, 3, 4, 5]]
    trace.write_text("\n".join(json.dumps({"timestamp": 0, "hash_ids": row}) for row in rows))
    (report,) = command("cache", "verify", str(trace), "--json").lines_of_json
    assert (report["calls"], list(report["paths"])) == ({"begins": 1, "extends": 1, "differs": 1}, ["hash_ids[1]"])
    assert "cannot show a beginning that has moved" in command("cache", "verify", str(trace)).out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no log\n", "No request is found"),
        ("[{", "begins as a JSON array and is none"),
        ('[{"messages": []}]\n[{"messages": []}]\n', "write one object a line"),
        ("\x1f\x8b\x08", "is compressed: unpack it first"),
        ("", "No request is found"),
    ],
)
def test_what_is_no_log_is_said(command: Command, tmp_path: Path, content: str, said: str) -> None:
    log = tmp_path / "log"
    log.write_bytes(content.encode("latin-1"))
    ran = command("cache", "verify", str(log))
    assert (ran.exit_code, said in ran.err) == (2, True)


@pytest.mark.parametrize(
    "line",
    [
        "Request cmpl-1 details: prompt: '\\xzz cut', prompt_token_ids: None",
        "Request cmpl-1 details: prompt: 'a \0 within', prompt_token_ids: None",
        '{"nested": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"messages": [null]}',
    ],
    ids=["escape", "null byte", "depth", "null"],
)
def test_a_broken_line_is_passed_over(command: Command, tmp_path: Path, line: str) -> None:
    ran = command("cache", "verify", write(tmp_path, calls(), lambda body: f"{line}\n{plain(body)}"), "--json")
    assert ran.lines_of_json[0]["calls"] == {"begins": 12, "extends": 48}


def test_lines_without_a_request_are_counted(command: Command, tmp_path: Path) -> None:
    redacted = json.dumps({"model": "m", "messages": [{"role": "user", "content": "redacted-by-litellm"}]})
    bodies = list(conversation(random.Random(3), 2, "You help."))
    ran = command("cache", "verify", write(tmp_path, bodies, lambda body: f"{redacted}\n{plain(body)}"))
    assert "3 lines hold no request that can be compared" in ran.out
    log = tmp_path / "redacted.jsonl"
    log.write_text(f"{redacted}\n" * 5)
    ran = command("cache", "verify", str(log))
    assert (ran.exit_code, "turn_off_message_logging" in ran.err) == (2, True)


@pytest.mark.parametrize("is_rendered", [True, False])
def test_prompts_that_were_cut_are_refused(command: Command, tmp_path: Path, *, is_rendered: bool) -> None:
    def cut(body: Body) -> str:
        line = engine(body) if is_rendered else engine_tokens(body)
        whole: Any = ast.literal_eval(
            line.partition("prompt: " if is_rendered else "ids: ")[2].partition(", prompt_")[0]
        )
        prompt, tokens = (whole[:300], None) if is_rendered else (None, whole[:300])
        return f"Request chatcmpl-1 details: prompt: {prompt!r}, prompt_token_ids: {tokens}, prompt_embeds shape: None."

    ran = command("cache", "verify", write(tmp_path, calls(), cut))
    assert (ran.exit_code, "--max-log-len" in ran.err) == (2, True)


def test_half_a_character_is_compared_and_shown(command: Command, tmp_path: Path) -> None:
    bodies = list(conversation(random.Random(3), 3, "You help."))
    bodies[-1]["messages"][0]["content"] = "You \ud83d help."
    (report,) = command("cache", "verify", write(tmp_path, bodies, plain), "--json").lines_of_json
    assert report["examples"]["messages[0]"][0]["now"] == "? help."


SYSTEM = "You help, and this is why. " * 100


@pytest.fixture
def talked(backend: FakeBallast) -> FakeBallast:
    """A backend with one conversation of two turns, of which the second one called a tool."""
    first, second = conversation(random.Random(5), 2, SYSTEM)
    tool_call = {"id": "call_1", "type": "function", "function": {"name": "alpha", "arguments": "{}"}}
    third = deepcopy(second)
    third["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "found"},
    ]
    sent = {"resp_1": [first], "resp_2": [second, third]}
    items = [{"id": f"msg_{name}", "response_id": name} for name in sent]

    def shown(body: Body, call: int) -> Body:
        told = {"kind": "user", "position": 1, "tokens": 3, "reused": False}
        return {
            "call": call, "epoch_reason": None, "shortfall": None, "tools": body["tools"],
            "messages": [{**told, **message} for message in body["messages"]],
        }  # fmt: skip

    backend.on("GET /v1/conversations", lambda request, _: page([{"id": "conv_1"}], request))
    backend.on("GET /v1/conversations/conv_1/items", lambda request, _: page(items, request))
    for number, (name, bodies) in enumerate(sent.items()):
        told = {"id": name, "model": "m", "created_at": 1_760_000_000 + 86_400 * number, "usage": {"output_tokens": 9}}
        prompts = [shown(body, call) for call, body in enumerate(bodies, 1)]
        backend.on(f"GET /v1/responses/{name}", lambda _, __, told=told: answer(told))
        backend.on(f"GET /v1/responses/{name}/prompts", lambda _, __, prompts=prompts: answer({"data": prompts}))
    return backend


@pytest.mark.parametrize("form", ["openai", "folded", "mooncake"])
def test_what_is_exported_passes_the_check(command: Command, talked: FakeBallast, tmp_path: Path, form: str) -> None:
    ran = command("cache", "export", "--form", form)
    assert (ran.exit_code, len(ran.lines_of_json)) == (0, 3)
    log = tmp_path / "exported.jsonl"
    log.write_text(ran.out)
    checked = command("cache", "verify", str(log), "--json")
    assert (checked.exit_code, checked.lines_of_json[0]["calls"]) == (0, {"begins": 1, "extends": 2})


def test_an_exported_call_is_the_body_that_was_sent(command: Command, talked: FakeBallast) -> None:
    (first, *_) = command("cache", "export", "conv_1").lines_of_json
    (sent, _) = conversation(random.Random(5), 2, SYSTEM)
    assert {name: first[name] for name in ("model", "messages", "tools")} == sent
    assert (first["conversation"], first["request_id"]) == ("conv_1", "resp_1/1")


def test_folded_messages_have_text_only(command: Command, talked: FakeBallast) -> None:
    last = command("cache", "export", "--form", "folded").lines_of_json[-1]
    assert all(isinstance(message["content"], str) for message in last["messages"])
    assert '"name": "alpha"' in last["messages"][-2]["content"]


def test_a_trace_has_no_word_of_the_content(command: Command, talked: FakeBallast) -> None:
    ran = command("cache", "export", "--form", "mooncake")
    assert {key for line in ran.lines_of_json for key in line} == {
        "timestamp", "input_length", "output_length", "hash_ids",
    }  # fmt: skip
    assert "word" not in ran.out


def test_days_before_are_left_out(command: Command, talked: FakeBallast) -> None:
    lines = command("cache", "export", "--since", "2025-10-10").lines_of_json
    assert [line["request_id"] for line in lines] == ["resp_2/1", "resp_2/2"]


def test_calls_are_exported_by_their_time(command: Command, talked: FakeBallast) -> None:
    later = {"id": "resp_0", "model": "m", "created_at": 1_760_000_000 + 9 * 86_400, "usage": {"output_tokens": 9}}
    talked.on("GET /v1/conversations", lambda request, _: page([{"id": "conv_2"}, {"id": "conv_1"}], request))
    talked.on(
        "GET /v1/conversations/conv_2/items",
        lambda request, _: page([{"id": "msg_0", "response_id": "resp_0"}], request),
    )
    talked.on("GET /v1/responses/resp_0", lambda _, __: answer(later))
    (body,) = conversation(random.Random(6), 1, SYSTEM)
    shown = {"call": 1, "epoch_reason": None, "shortfall": None, **body}
    talked.on("GET /v1/responses/resp_0/prompts", lambda _, __: answer({"data": [shown]}))
    lines = command("cache", "export").lines_of_json
    assert [line["request_id"] for line in lines] == ["resp_1/1", "resp_2/1", "resp_2/2", "resp_0/1"]
    times = [line["timestamp"] for line in command("cache", "export", "--form", "mooncake").lines_of_json]
    assert times == [0, 86_400_000, 86_400_000, 9 * 86_400_000]
