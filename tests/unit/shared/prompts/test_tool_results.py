"""What is left of a long text: its beginning and its end, and how much stood between them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from shared.prompts.tool_results import NOTICE_TOKENS, cut_to, documents_left_out, within_tokens
from shared.tokens import estimate_tokens
from tests.examples import examples

LEFT_OUT = re.compile(r"\n\[… (\d+) of about (\d+) tokens of this text are left out here …\]\n")
texts = st.text(st.sampled_from("a 知é🎉\n"), max_size=600)


def test_a_short_text_stays():
    assert within_tokens("word" * 100, 100) == "word" * 100


def test_beginning_and_end_stay():
    text = "".join(f"{number:05d} " for number in range(10_000))  # 15,000 tokens
    cut = within_tokens(text, 1_000)
    assert cut.startswith("00000 00001 ")
    assert cut.endswith("09998 09999 ")
    assert "\n[… 14048 of about 15000 tokens of this text are left out here …]\n" in cut
    assert 900 < estimate_tokens(cut) <= 1_000


@given(texts, st.integers(NOTICE_TOKENS, 400))
@examples(500, few=100)
def test_the_limit_holds_and_nothing_is_made_up(text: str, limit_tokens: int):
    cut = within_tokens(text, limit_tokens)
    assert estimate_tokens(cut) <= max(limit_tokens, NOTICE_TOKENS)
    if cut != text:
        assert estimate_tokens(text) > limit_tokens
        head, left, whole, tail = LEFT_OUT.split(cut)
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + len(tail) < len(text)
        assert (int(whole), int(left) <= int(whole)) == (estimate_tokens(text), True)
    cut.encode()


@given(texts, st.integers(0, 400))
@examples(500, few=100)
def test_the_beginning_is_the_longest_that_fits(text: str, limit_tokens: int):
    beginning = cut_to(text, limit_tokens)
    assert text.startswith(beginning)
    assert estimate_tokens(beginning) <= limit_tokens
    if beginning != text:
        assert estimate_tokens(text[: len(beginning) + 1]) > limit_tokens


def test_notices_are_shorter_than_is_kept_for_them():
    longest = 10**9
    assert estimate_tokens(documents_left_out(longest, longest)) < NOTICE_TOKENS
    assert estimate_tokens(LEFT_OUT.pattern.replace(r"(\d+)", str(longest))) < NOTICE_TOKENS
