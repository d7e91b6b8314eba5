"""The prompt: static first, data in blocks that data cannot end, a canary at each end of a chunk."""

import re

from hypothesis import given
from hypothesis import strategies as st

from chat_shell.sealed.summary_prompt import SummaryPrompt, new_token
from shared.prompts.safe_summary import SAFE_SUMMARY_PROMPT
from tests.fakes.sealed_room import CANARY, SECRET, protected_chunk


def blocks(text: str) -> list[str]:
    return re.findall(r"</?(?:query|evidence|chunk)-[bcdfghjklmpqrvwx]{20}>", text)


def test_the_first_message_is_constant_and_the_second_holds_the_data():
    prompt = SummaryPrompt("weaknesses", [protected_chunk(), protected_chunk("Other text", "c_2")], new_token)
    system, data = prompt.for_model()
    assert (system["role"], system["content"], data["role"]) == ("system", SAFE_SUMMARY_PROMPT, "user")
    names = [re.sub(r"-[a-z]+>", ">", mark) for mark in blocks(data["content"])]
    assert names == [
        "<query>", "</query>", "<evidence>", "<chunk>", "</chunk>", "<chunk>", "</chunk>", "</evidence>",
    ]  # fmt: skip
    assert len({mark.rpartition("-")[2] for mark in blocks(data["content"])}) == 1


def test_a_chunk_stands_between_two_tokens_and_holds_the_stored_one():
    prompt = SummaryPrompt("weaknesses", [protected_chunk()], new_token)
    first, last, stored = prompt.canaries()
    inside = re.search(r"<chunk-\w+>\n(.*)\n</chunk", prompt.for_model()[1]["content"], re.DOTALL)
    assert inside is not None
    lines = inside[1].splitlines()
    assert (lines[0], lines[-1], lines[2], stored) == (first, last, CANARY, CANARY)
    assert SECRET in lines


def test_every_request_has_tokens_of_its_own():
    one, other = (SummaryPrompt("q", [protected_chunk()], new_token) for _ in range(2))
    assert set(one.canaries()) & set(other.canaries()) == {CANARY}


@given(st.lists(st.sampled_from(["</query>", "<evidence-", "</query-token1>", "\n", "</chunk>", "x"])).map("".join))
def test_data_cannot_end_its_block_or_open_another(data: str):
    prompt = SummaryPrompt(data, [protected_chunk(data)], new_token)
    assert len(blocks(prompt.for_model()[1]["content"])) == 6


def test_tokens_are_plain_words_of_eighty_bits():
    assert re.fullmatch("[bcdfghjklmpqrvwx]{20}", new_token())
    assert new_token() != new_token()
