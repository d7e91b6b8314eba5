"""`ballast ask`: streams, cites, goes on, and says why an answer is not whole."""

from typing import Any

import pytest

from tests.fakes.ballast_api import FakeBallast, answer, refusal, stream
from tests.unit.cli.conftest import Command

TEXT = "Within 15 minutes [1], else the lead is called [2]. Twice [1]."
ANNOTATIONS = [
    {"type": "file_citation", "filename": name, "index": TEXT.index(marker, start)}
    for name, marker, start in (("on-call.md", "[1]", 0), ("leads.md", "[2]", 0), ("on-call.md", "[1]", 30))
]


def response(status: str, **members: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": TEXT, "annotations": ANNOTATIONS}]
    return {"id": "resp_1", "status": status, "output": [{"type": "message", "content": content}], **members}


CREATED = {"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "status": "in_progress"}}
FIRST = {"type": "response.output_text.delta", "sequence_number": 1, "delta": TEXT[:20]}
REST = {"type": "response.output_text.delta", "sequence_number": 2, "delta": TEXT[20:]}
COMPLETED = {"type": "response.completed", "sequence_number": 3, "response": response("completed")}


@pytest.fixture(autouse=True)
def answering(backend: FakeBallast) -> None:
    backend.bases = {"kb_1": "Handbook"}
    backend.on("POST /v1/responses", lambda _, __: stream(CREATED, FIRST, REST, COMPLETED))


def test_an_answer_has_its_sources_as_footnotes(command: Command, backend: FakeBallast) -> None:
    ran = command("ask", "How soon?", "--base", "Handbook")
    assert ran.exit_code == 0, ran.err
    assert ran.out == f"{TEXT}\n\n[1] on-call.md\n[2] leads.md\n"
    tools = [{"type": "file_search", "vector_store_ids": ["kb_1"]}]
    assert backend.bodies == [{"input": "How soon?", "stream": True, "tools": tools}]


def test_the_sources_of_an_answer_count_from_1(command: Command, backend: FakeBallast) -> None:
    texts = ("See [2020]. ", "Within 15 minutes [14][9]", ", twice [14].")
    whole = "".join(texts)
    places = [
        (whole.index("[14]"), "on-call.md"),
        (whole.index("[9]"), "leads.md"),
        (whole.rindex("[14]"), "on-call.md"),
    ]
    cited: list[dict[str, Any]] = [
        {"type": "file_citation", "filename": name, "index": index} for index, name in places
    ]
    cited[1] |= {"place": {"page": 7}, "other_names": ["copy.md"]}
    said = [{"type": "response.output_text.delta", "delta": text} for text in texts]
    added = [{"type": "response.output_text.annotation.added", "annotation": each} for each in cited]
    content = [{"type": "output_text", "text": whole, "annotations": cited}]
    ended = {"id": "resp_1", "status": "completed", "output": [{"type": "message", "content": content}]}
    events = (
        CREATED,
        said[0],
        said[1],
        *added[:2],
        said[2],
        added[2],
        {"type": "response.completed", "response": ended},
    )
    backend.on("POST /v1/responses", lambda _, __: stream(*events))
    ran = command("ask", "How soon?", "--base", "Handbook")
    assert (
        ran.out
        == "See [2020]. Within 15 minutes [1][2], twice [1].\n\n[1] on-call.md\n[2] leads.md, p. 7 (also copy.md)\n"
    )


def test_the_next_question_goes_on(command: Command, backend: FakeBallast) -> None:
    command("ask", "How soon?", BALLAST_BASE="kb_1")
    command("ask", "And then?", "--continue", BALLAST_BASE="kb_1")
    assert backend.bodies[1] == {"input": "And then?", "stream": True, "previous_response_id": "resp_1"}
    command("ask", "Else?", "--after", "resp_0", "--agent", "butler")
    assert backend.bodies[2] == {
        "input": "Else?", "stream": True, "previous_response_id": "resp_0", "model": "butler",
    }  # fmt: skip


def test_an_empty_question_is_not_asked(command: Command, backend: FakeBallast) -> None:
    ran = command("ask", " \n")
    assert (ran.exit_code, backend.calls) == (2, [])
    assert "The question is empty." in ran.err


def test_without_a_last_answer_nothing_goes_on(command: Command, backend: FakeBallast) -> None:
    ran = command("ask", "And then?", "--continue")
    assert (ran.exit_code, backend.calls) == (2, [])
    assert "name a response by its id" in ran.err


def test_json_is_the_whole_response_alone(command: Command) -> None:
    assert command("ask", "How soon?", "--json").lines_of_json == [response("completed")]


def test_a_broken_stream_is_followed_where_it_broke(command: Command, backend: FakeBallast) -> None:
    backend.on("POST /v1/responses", lambda _, __: stream(CREATED, FIRST, whole=False))
    backend.on("GET /v1/responses/resp_1", lambda request, _: stream(REST, COMPLETED))
    ran = command("ask", "How soon?")
    assert ran.exit_code == 0
    assert ran.out.startswith(f"{TEXT}\n")


@pytest.mark.parametrize(
    ("status", "members", "said"),
    [
        ("failed", {"error": {"message": "The model does not exist.", "type": "UnknownModel"}}, "The model does not"),
        ("incomplete", {"incomplete_details": {"reason": "content_filter"}}, "incomplete (content_filter)"),
        ("cancelled", {}, "The answer is cancelled."),
    ],
)
def test_an_answer_that_is_not_whole_says_why(
    command: Command, backend: FakeBallast, status: str, members: dict[str, Any], said: str
) -> None:
    ended = {"type": "response.incomplete", "sequence_number": 3, "response": response(status, **members)}
    backend.on("POST /v1/responses", lambda _, __: stream(CREATED, FIRST, ended))
    ran = command("ask", "How soon?")
    assert ran.exit_code == 1
    assert said in ran.err


def test_a_refusal_is_said_once(command: Command, backend: FakeBallast) -> None:
    backend.on("POST /v1/responses", lambda _, __: refusal(400, "model: no such model"))
    ran = command("ask", "How soon?", "--json")
    assert (ran.exit_code, ran.out) == (2, "")
    assert ran.err.startswith("model: no such model\nWhat to do: correct what the message names")
    assert ran.err.count("model: no such model") == 1


def test_an_answer_commands_no_terminal(command: Command, backend: FakeBallast) -> None:
    hostile = {**FIRST, "delta": "\x1b]0;owned\x07\x1b[2J\x9bred\u202e"}
    backend.on("POST /v1/responses", lambda _, __: stream(CREATED, hostile, COMPLETED))
    assert not set("\x1b\x07\x9b\u202e") & set(command("ask", "How soon?").out)


def test_another_program_at_the_address_is_told(command: Command, backend: FakeBallast) -> None:
    backend.on("GET /v1/knowledge_bases", lambda _, __: answer({"hello": "world"}, 404))
    ran = command("ask", "How soon?", "--base", "Handbook")
    assert ran.exit_code == 3
    assert "not as a backend of Ballast does" in ran.err
