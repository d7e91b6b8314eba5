"""Events out of bytes, however they are split."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ModelProtocolViolated
from shared.server_sent_events import EventDecoder

LIMIT = 1_000

STREAM = (
    b"\xef\xbb\xbf: hello\r\n\r\n"
    b"event: message\r\nid: 7\r\ndata: one\r\n\r\n"
    b"retry: 10\n\n"
    b"data:two\n\n"
    b"data: drei, \xe4\xb8\x89\n\n"
    b"data: a\ndata: b\n\n"
    b"data: bare\rdata: return\r\r"
    b"data\n\n"
    b"data: [DONE]\n\n"
)
PAYLOADS = [b"one", b"two", b"drei, \xe4\xb8\x89", b"a\nb", b"bare\nreturn", b"", b"[DONE]"]


def decoded(pieces: list[bytes]) -> list[bytes]:
    decoder = EventDecoder(LIMIT, ModelProtocolViolated("too long"))
    return [payload for piece in pieces for payload in decoder.feed(piece)] + decoder.flush()


def test_whole():
    assert decoded([STREAM]) == PAYLOADS


def test_byte_by_byte():
    assert decoded([STREAM[at : at + 1] for at in range(len(STREAM))]) == PAYLOADS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split(cuts: list[int]):
    edges = [0, *sorted(cuts), len(STREAM)]
    assert decoded([STREAM[a:b] for a, b in pairwise(edges)]) == PAYLOADS


def test_a_whole_event_goes_on_where_one_was_begun():
    assert decoded([b"data: a\n", b"data: b\n\n", b"data: c\n\n"]) == [b"a\nb", b"c"]
    assert decoded([b"data: a", b"data: b\n\n"]) == [b"adata: b"]
    assert decoded([b"data: a\r", b"data: b\n\n"]) == [b"a\nb"]


def test_a_byte_order_mark_is_skipped():
    assert decoded([b"\xef\xbb\xbfdata: one\n\n"]) == [b"one"]


def test_the_last_event_needs_no_end():
    assert decoded([b"data: one\n\nda", b"ta: [DONE]"]) == [b"one", b"[DONE]"]


def test_a_field_named_error_is_a_payload():
    assert decoded([b'data: x\n\nerror: {"code": 500}\n\n']) == [b"x", b'{"error": {"code": 500}}']


def test_events_that_follow_each_other_are_each_within_the_limit():
    assert len(decoded([b"data: " + b"x" * 600 + b"\n\n"] * 5)) == 5


def test_an_event_in_many_pieces_is_within_the_limit():
    assert decoded([b"data: ", *[b"x"] * 900, b"\n", b"\n"]) == [b"x" * 900]


def test_comments_are_not_kept():
    assert decoded([b": heartbeat\n"] * 1_000) == []


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 600, b"data: " + b"x" * 600 + b"\n", b": " + b"x" * 600])
def test_an_event_without_an_end_does_not_fill_the_memory(piece: bytes):
    with pytest.raises(ModelProtocolViolated):
        decoded([piece] * 3)
