"""Files inside messages become text before a turn starts, once."""

import json
import tracemalloc
from base64 import b64encode
from dataclasses import replace
from typing import Any

import orjson
import pytest
from openai import BadRequestError

from backend.conversations.domain.attached_files import UnreadFile
from backend.conversations.domain.input_items import InputFilePart
from backend.knowledge.domain.excerpts import best_chunks, count_shown_tokens
from backend.search.domain.chunks import Chunk
from backend.turns.domain.file_parts import MAX_FILES, STEP_CHARACTERS, GivenFile, bytes_given
from shared.errors import InvalidRequest
from shared.models.messages import Content, TextPart, UserMessage
from shared.models.values import objects_in
from shared.prompts.attached_files import EXCERPT, GAP, WHOLE
from shared.tokens import estimate_tokens
from tests.fakes.attached_files import FakeAttachedFiles, FakeText
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import ADA, BOB, open_house
from tests.fakes.parsed_requests import parse_turn_request
from tests.fakes.served_turns import serve_api
from tests.unit.backend.turns.attaching import RIVERS, file, files_in, inline, user

WINDOW = 128_000


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def texts(content: Content | None) -> list[str]:
    assert isinstance(content, tuple)
    return [part.text for part in content if isinstance(part, TextPart)]


async def test_a_model_reads_the_text_and_clients_see_the_name() -> None:
    async with open_house(answer("In the Alps.")) as house:
        done = await house.ask(input=[user(file())])
        (block,) = files_in(house.sent[0])
        assert house.sent[0].history == (UserMessage(content=block),)
        (question,) = texts(house.sent[0].prompt)
        digest = block.partition('id="')[2].partition('"')[0]
        assert block == f'<file id="{digest}" name="rivers.md">\n{WHOLE}\n\n{RIVERS}\n</file id="{digest}">'
        assert question == "Where does it rise?"
        assert done.input_items[0]["content"] == [
            {"type": "input_file", "filename": "rivers.md"},
            {"type": "input_text", "text": "Where does it rise?"},
        ]


async def test_later_turns_send_the_same_bytes_and_read_nothing_again() -> None:
    async with open_house(answer("One."), answer("Two."), answer("Three.")) as house:
        first = await house.ask(input=[user(file())])
        (block,) = files_in(house.sent[0])
        second = await house.ask(input=[user(file()), said("One."), user(text="And then?")])
        third = await house.ask(input="More?", previous_response_id=second.id)
        assert first.conversation_id == second.conversation_id == third.conversation_id
        for sent in house.sent[1:]:
            assert sent.history[0] == UserMessage(content=block)
            assert files_in(sent) == [block]
        assert house.documents.types == ["text/markdown"]


@pytest.mark.parametrize("changed", [{"filename": "other.md"}, {"file_data": inline("# Lakes")}])
async def test_another_file_is_another_history(changed: dict[str, str]) -> None:
    async with open_house(answer("One."), answer("Two.")) as house:
        first = await house.ask(input=[user(file())])
        second = await house.ask(input=[user(file() | changed), said("One."), user()])
        assert second.conversation_id != first.conversation_id
        assert len(house.documents.types) == 2


async def test_one_file_given_twice_is_read_once() -> None:
    async with open_house(answer("One.")) as house:
        await house.ask(input=[user(file(), file()), said("Fine."), user(file())])
        assert house.documents.types == ["text/markdown"]
        earlier, current = files_in(house.sent[0])
        assert earlier == current
        roles = [message.role for message in house.sent[0].history]
        assert roles == ["user", "user", "assistant", "user"]


async def test_a_long_file_is_searched_for_the_question_within_a_quarter_of_the_window() -> None:
    lines = [f"Barrel {number} holds the wine of year {number % 97}." for number in range(5_000)]
    lines[4_000] = "The zinfandel of the abbess lies in the deepest cellar."
    async with open_house(answer("There.")) as house:
        await house.ask(
            input=[user(file("cellar.txt", "\n\n".join(lines)), text="Where is the zinfandel of the abbess?")]
        )
        (block,) = files_in(house.sent[0])
        assert lines[4_000] in block
        assert f"\n\n{GAP}\n\n" in block
        assert WINDOW // 8 < estimate_tokens(block) <= WINDOW // 4
        assert EXCERPT.partition("{")[0] in block


async def test_of_a_file_far_too_long_the_pieces_alone_are_held() -> None:
    """Its text may take four bytes a character, beside that of the pieces."""
    async with open_house() as house:
        items = [user(file("a.txt", "Barrels hold wine.\n\n" * 8_000))]
        asked = await house.prepare.requests.read(ADA, parse_turn_request(orjson.dumps({"input": items})))
        await house.prepare.drafting.draft(asked, await house.prepare.start(asked), "req_1")
        (read,) = asked.files.read.values()
        assert (read.text, sum("Barrels" in chunk.text for chunk in read.chunks)) == ("", len(read.chunks))
        assert read.tokens > WINDOW // 4


@pytest.mark.parametrize("head", ["", "data:text/plain;base64,"])
@pytest.mark.parametrize("length", [0, 5, 3 * STEP_CHARACTERS // 4, 3 * STEP_CHARACTERS + 1])
def test_bytes_are_decoded_in_steps_that_hold_little_more_than_them(head: str, length: int) -> None:
    body = bytes(range(256)) * (length // 256) + b"x" * (length % 256)
    part = InputFilePart(type="input_file", file_data=head + b64encode(body).decode())
    tracemalloc.start()
    _, given = bytes_given(GivenFile(part, "0a", "input[0]"))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert given == body
    assert peak_bytes < 1.25 * length + 4 * STEP_CHARACTERS


@pytest.mark.parametrize("place", [4, STEP_CHARACTERS])
def test_padding_before_the_end_is_no_base64(place: int) -> None:
    text = ("A" * (place - 1) + "=").ljust(2 * STEP_CHARACTERS, "A")
    with pytest.raises(InvalidRequest, match="not valid base64"):
        bytes_given(GivenFile(InputFilePart(type="input_file", file_data=text), "0a", "input[0]"))


async def test_several_files_share_the_quarter() -> None:
    long = "\n\n".join(f"Barrel {number} holds wine." for number in range(6_000))
    async with open_house(answer("There.")) as house:
        await house.ask(input=[user(file(), file("a.txt", long), file("b.txt", f"{long}!"))])
        blocks = files_in(house.sent[0])
        assert RIVERS in blocks[0]
        assert sum(map(estimate_tokens, blocks)) <= WINDOW // 4


def test_without_a_word_found_an_excerpt_begins_at_the_beginning() -> None:
    chunks = [Chunk(id="", document_id="", ordinal=n, heading_path=(), text="x y", tokens=1) for n in range(9)]
    assert best_chunks(chunks, "zinfandel", 3 * count_shown_tokens(chunks[0])) == tuple(chunks[:3])
    assert best_chunks(chunks, "", 0) == ()


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (file("a.docx", file_data=inline("no archive", "")), "is no DOCX", "file_data"),
    (file("a.exe", file_data=inline(b"\x00\x01", "application/octet-stream")), "Cannot read the type", "file_data"),
    (file(file_data=inline(bytes(range(128, 256)) * 9)), "encoding is uncertain", "file_data"),
    (file(file_data="data:text/plain;base64,!!"), "not valid base64", "file_data"),
    (file(file_data="data:text/plain,x"), "data URL with base64", "file_data"),
    (file(file_data="https://example.org/a.pdf"), "Files are not fetched", "file_data"),
    ({"type": "input_file", "filename": "a.md"}, "Give the bytes", "file_data"),
    (file(file_id="file_1"), "not both", "file_id"),
    ({"type": "input_file", "file_id": "file_1"}, "There is no file 'file_1'", "file_id"),
]


@pytest.mark.parametrize(("part", "reason", "field"), REFUSED)
async def test_a_bad_file_is_named_with_the_reason(part: dict[str, Any], reason: str, field: str) -> None:
    async with open_house(answer("Never."), files=FakeAttachedFiles()) as house:
        with pytest.raises(InvalidRequest, match=reason) as caught:
            await house.ask(input=[said("Hello."), user(file(), part)])
        assert caught.value.param == f"input[1].content[1].{field}"
        assert not house.state.conversations
        assert house.observer.started == []


@pytest.mark.parametrize("place", ["history", "current"])
async def test_no_turn_is_made_of_files_that_were_not_read(place: str) -> None:
    """Their places would be sent as empty texts."""
    unread = (UnreadFile(text="", digest="0a1b", filename="a.md"),)
    async with open_house() as house:
        prepare = house.prepare
        request = parse_turn_request(b'{"model": "demo-model", "input": "Well?"}')
        asked = await prepare.requests.read(ADA, request)
        draft = await prepare.drafting.draft(asked, await prepare.start(asked), "req_1")
        changed: dict[str, Any] = {place: (UserMessage(content=unread),) if place == "history" else unread}
        with pytest.raises(ValueError, match="1 files of the input have not been read"):
            replace(draft, read=replace(draft.read, **changed))


async def test_a_file_by_address_is_refused() -> None:
    async with open_house() as house:
        with pytest.raises(InvalidRequest, match="files are not fetched") as caught:
            await house.ask(input=[user({"type": "input_file", "file_url": "https://example.org/a.pdf"})])
        assert caught.value.param == "input[0].content[0].file_url"


async def test_the_files_of_a_request_are_counted() -> None:
    async with open_house() as house:
        with pytest.raises(InvalidRequest, match=f"more than {MAX_FILES} files") as caught:
            await house.ask(input=[user(*[file()] * (MAX_FILES + 1))])
        assert caught.value.param == f"input[0].content[{MAX_FILES}]"


async def test_a_stored_file_is_its_owners_alone_and_is_recognised_by_its_id() -> None:
    files = FakeAttachedFiles()
    files.stored[ADA.user_id, "file_1"] = FakeText("r.txt", RIVERS)
    part = {"type": "input_file", "file_id": "file_1"}
    async with open_house(answer("One."), answer("Two."), files=files) as house:
        first = await house.ask(input=[user(part)])
        assert objects_in(first.input_items[0]["content"])[0] == part
        assert 'name="r.txt" file_id="file_1"' in files_in(house.sent[0])[0]
        del files.stored[ADA.user_id, "file_1"]
        second = await house.ask(input=[user(part), said("One."), user()])
        assert second.conversation_id == first.conversation_id
        with pytest.raises(InvalidRequest, match="There is no file 'file_1'"):
            await house.ask(BOB, input=[user(part)])


async def test_without_a_store_of_files_ids_are_refused() -> None:
    async with open_house() as house:
        with pytest.raises(InvalidRequest, match="Files are not stored here") as caught:
            await house.ask(input=[user({"type": "input_file", "file_id": "file_1"})])
        assert caught.value.param == "input[0].content[0].file_id"


async def test_the_result_of_a_function_may_be_a_file() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "fetch", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": [file()]}
    async with open_house(answer("One.")) as house:
        done = await house.ask(input=[user(), call, result])
        assert RIVERS in json.dumps([m.model_dump() for m in house.sent[0].history], ensure_ascii=False).replace(
            "\\n", "\n"
        )
        assert done.input_items[2]["output"] == [{"type": "input_file", "filename": "rivers.md"}]


async def test_chat_completions_take_files_too() -> None:
    part: Any = {"type": "file", "file": {"filename": "rivers.md", "file_data": inline(RIVERS)}}
    asked: Any = {"type": "text", "text": "Where?"}
    bad: Any = {"type": "file", "file": {"filename": "a.docx", "file_data": inline("x", "")}}
    async with serve_api(answer("One."), answer("Two.")) as api:
        chat = api.openai.chat.completions
        first: Any = {"role": "user", "content": [part, asked]}
        await chat.create(model="demo-model", messages=[first])
        more: Any = [first, said("One."), {"role": "user", "content": "And?"}]
        await chat.create(model="demo-model", messages=more)
        assert RIVERS in files_in(api.turns.sent[0])[0]
        assert files_in(api.turns.sent[1]) == files_in(api.turns.sent[0])
        assert api.turns.documents.types == ["text/markdown"]
        with pytest.raises(BadRequestError, match="cannot be read: The file is no DOCX") as caught:
            await chat.create(model="demo-model", messages=[said("x"), {"role": "user", "content": [part, bad]}])  # pyright: ignore[reportArgumentType]
        assert caught.value.param == "messages[1].content[1].file.file_data"


async def test_items_of_a_conversation_hold_no_files_without_a_turn() -> None:
    async with serve_api(answer("One.")) as api:
        conversation = await api.openai.conversations.create()
        with pytest.raises(BadRequestError, match="in the input of a response only") as caught:
            await api.openai.conversations.items.create(conversation.id, items=[user(file())])  # pyright: ignore[reportArgumentType]
        assert caught.value.param == "items[0].content[0].type"
        done = await api.openai.responses.create(input=[user(file())], conversation=conversation.id)  # pyright: ignore[reportArgumentType]
        shown = await api.openai.responses.input_items.list(done.id)
        assert shown.data[0].to_dict()["content"] == [
            {"type": "input_file", "filename": "rivers.md"},
            {"type": "input_text", "text": "Where does it rise?"},
        ]
