"""Events out of bytes, however they are split."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.models.transport.sse import EventDecoder
from shared.errors import ModelProtocolViolated

STREAM = (
    b": hello\r\n\r\n"
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
    decoder = EventDecoder()
    return [payload for piece in pieces for payload in decoder.feed(piece)] + decoder.flush()


def test_whole():
    assert decoded([STREAM]) == PAYLOADS


def test_byte_by_byte():
    assert decoded([STREAM[at : at + 1] for at in range(len(STREAM))]) == PAYLOADS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split(cuts: list[int]):
    edges = [0, *sorted(cuts), len(STREAM)]
    assert decoded([STREAM[a:b] for a, b in pairwise(edges)]) == PAYLOADS


def test_a_byte_order_mark_is_skipped():
    assert decoded([b"\xef\xbb\xbfdata: one\n\n"]) == [b"one"]


def test_the_last_event_needs_no_end():
    assert decoded([b"data: one\n\nda", b"ta: [DONE]"]) == [b"one", b"[DONE]"]


def test_a_field_named_error_is_a_payload():
    assert decoded([b'data: x\n\nerror: {"code": 500}\n\n']) == [b"x", b'{"error": {"code": 500}}']


@pytest.mark.parametrize("piece", [b"x" * 60, b"data: " + b"x" * 20 + b"\n"])
def test_an_event_without_an_end(piece: bytes):
    decoder = EventDecoder(max_event_bytes=100)
    with pytest.raises(ModelProtocolViolated):
        for _ in range(10):
            decoder.feed(piece)
