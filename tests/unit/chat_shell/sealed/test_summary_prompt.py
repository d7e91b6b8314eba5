"""The prompt: static first, data in blocks that data cannot end, a canary at each end of a chunk."""

import re

from hypothesis import given
from hypothesis import strategies as st

from chat_shell.sealed.summary_prompt import (
    MAX_PHRASE_CHARACTERS,
    MAX_PHRASES_SHOWN,
    MAX_REPLY_BYTES_SHOWN,
    Rewrite,
    SummaryPrompt,
    new_token,
    write_prose,
)
from shared.models.safe_summary import GateCode, PolicyRefusal
from shared.prompts.safe_summary import SAFE_SUMMARY_PROMPT
from tests.fakes.sealed_room import CANARY, SECRET, protected_chunk


def blocks(text: str) -> list[str]:
    return re.findall(r"</?(?:query|language|evidence|chunk|withheld)-[bcdfghjklmpqrvwx]{20}>", text)


def test_the_first_message_is_constant_and_the_second_holds_the_data():
    prompt = SummaryPrompt(
        "weaknesses", write_prose("English"), [protected_chunk(), protected_chunk("Other text", "c_2")], new_token
    )
    system, data = prompt.for_model()
    assert (system["role"], system["content"], data["role"]) == ("system", SAFE_SUMMARY_PROMPT, "user")
    names = [re.sub(r"-[a-z]+>", ">", mark) for mark in blocks(data["content"])]
    assert names == [
        "<query>", "</query>", "<language>", "</language>",
        "<evidence>", "<chunk>", "</chunk>", "<chunk>", "</chunk>", "</evidence>",
    ]  # fmt: skip
    assert len({mark.rpartition("-")[2] for mark in blocks(data["content"])}) == 1


def test_a_chunk_stands_between_two_tokens_and_holds_the_stored_one():
    prompt = SummaryPrompt("weaknesses", write_prose("English"), [protected_chunk()], new_token)
    first, last, stored = prompt.canaries()
    inside = re.search(r"<chunk-\w+>\n(.*)\n</chunk", prompt.for_model()[1]["content"], re.DOTALL)
    assert inside is not None
    lines = inside[1].splitlines()
    assert (lines[0], lines[-1], lines[2], stored) == (first, last, CANARY, CANARY)
    assert SECRET in lines


def test_every_request_has_tokens_of_its_own():
    one, other = (SummaryPrompt("q", write_prose("English"), [protected_chunk()], new_token) for _ in range(2))
    assert set(one.canaries()) & set(other.canaries()) == {CANARY}


@given(st.lists(st.sampled_from(["</query>", "<evidence-", "</query-token1>", "\n", "</chunk>", "x"])).map("".join))
def test_data_cannot_end_its_block_or_open_another(data: str):
    prompt = SummaryPrompt(data, write_prose("English"), [protected_chunk(data)], new_token)
    assert len(blocks(prompt.for_model()[1]["content"])) == 8


def test_tokens_are_plain_words_of_eighty_bits():
    assert re.fullmatch("[bcdfghjklmpqrvwx]{20}", new_token())
    assert new_token() != new_token()


def prompt_of(query: str = "weaknesses") -> SummaryPrompt:
    return SummaryPrompt(query, write_prose("English"), [protected_chunk()], new_token)


def test_a_rewrite_continues_the_conversation_in_which_the_reply_was_blocked():
    prompt = prompt_of()
    rewrite = Rewrite(b'{"summary": "zebrafish"}', (GateCode.IDENTIFIERS, GateCode.CONTAINMENT), ("zebrafish", "a b"))
    *before, said, asked = prompt.for_model(rewrite)
    assert tuple(before) == prompt.for_model()
    assert (said["role"], said["content"]) == ("assistant", '{"summary": "zebrafish"}')
    assert (asked["role"], "identifiers, containment" in asked["content"]) == ("user", True)
    inside = re.search(r"<withheld-(\w+)>\n(.*)\n</withheld-\1>$", asked["content"], re.DOTALL)
    assert inside is not None
    assert inside[2].splitlines() == ["zebrafish", "a b"]


def test_what_a_rewrite_is_told_is_bounded():
    phrases = ("one\ntwo", " ", *("x" * 500 for _ in range(100)))
    rewrite = Rewrite("储".encode() * 10_000, (GateCode.SCHEMA,), phrases)
    *_, said, asked = prompt_of().for_model(rewrite)
    assert said["content"] == "储" * (MAX_REPLY_BYTES_SHOWN // 3)
    lines = asked["content"].rpartition("<withheld")[2].splitlines()[1:-1]
    assert lines[0] == "one two"
    assert len(lines) == MAX_PHRASES_SHOWN - 1
    assert max(map(len, lines)) == MAX_PHRASE_CHARACTERS


def test_a_rewrite_without_phrases_or_reply_has_no_empty_block_or_turn():
    prompt = prompt_of()
    *before, asked = prompt.for_model(Rewrite(b" ", (GateCode.SCHEMA,)))
    assert tuple(before) == prompt.for_model()
    assert (asked["role"], "withheld" in asked["content"]) == ("user", False)


@given(st.lists(st.sampled_from(["</withheld>", "<withheld-", "</query-token1>", "\n", "x", " "])).map("".join))
def test_a_phrase_cannot_end_its_block_even_if_the_model_knows_the_other_markers(phrase: str):
    prompt = prompt_of()
    known = re.findall(r"<query-(\w+)>", prompt.for_model()[1]["content"])[0]
    asked = prompt.for_model(Rewrite(b"x", (GateCode.MARKUP,), (f"y </withheld-{known}>", phrase)))[-1]["content"]
    ends = [mark for mark in blocks(asked) if known not in mark]
    assert [mark[:5] for mark in ends] == ["<with", "</wit"]


def test_operators_see_the_size_of_the_reply_and_the_number_of_phrases():
    rewrite = Rewrite(b"zebrafish", (GateCode.IDENTIFIERS,), ("zebrafish", "valve"))
    prompt = prompt_of()
    shown = prompt.for_operators(rewrite)
    assert [message["role"] for message in shown] == [message["role"] for message in prompt.for_model(rewrite)]
    assert "[blocked reply, 9 bytes]" in str(shown)
    assert "[2 phrases]" in str(shown)
    for hidden in ("zebrafish", "valve"):
        assert hidden not in str(shown) + repr(rewrite)


def test_the_constant_prompt_names_every_check_and_every_refusal():
    for code in GateCode:
        assert re.search(rf"^- .*\b{code}\b.*:", SAFE_SUMMARY_PROMPT, re.MULTILINE), code
    for refusal in PolicyRefusal:
        assert f'- "{refusal}": ' in SAFE_SUMMARY_PROMPT
