import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat_shell_client.sse import SseDecoder
from shared.errors import ChatShellUnavailable

LIMIT = 1_000

STREAM = (
    b"\xef\xbb\xbf: heartbeat\n\n"
    b"event: text_delta\ndata: one\n\n"
    b"data:two\r\n\r\n"
    b"id: 7\nretry: 10\n\n"
    b"data: a\ndata:  b\r\n\n"
    b"data\n\n"
    b"data: \xe5\x86\xb7\r\r"
    b"data: [DONE]\n\n"
    b"data: cut off"
)
EXPECTED = [b"one", b"two", b"a\n b", b"", "冷".encode(), b"[DONE]"]


def decoded(pieces: list[bytes]) -> list[bytes]:
    decoder = SseDecoder(LIMIT)
    return [data for piece in pieces for data in decoder.feed(piece)]


def test_whole():
    assert decoded([STREAM]) == EXPECTED


def test_byte_by_byte():
    assert decoded([STREAM[index : index + 1] for index in range(len(STREAM))]) == EXPECTED


@given(st.lists(st.integers(0, len(STREAM)), max_size=8).map(sorted))
def test_split_anywhere(cuts: list[int]):
    edges = [0, *cuts, len(STREAM)]
    assert decoded([STREAM[start:end] for start, end in itertools.pairwise(edges)]) == EXPECTED


def test_events_that_follow_each_other_are_each_within_the_limit():
    assert len(decoded([b"data: " + b"x" * 600 + b"\n\n"] * 5)) == 5


def test_an_event_in_many_pieces_is_within_the_limit():
    assert decoded([b"data: ", *[b"x"] * 900, b"\n", b"\n"]) == [b"x" * 900]


@pytest.mark.parametrize("endless", [b"data: " + b"x" * 600, b"data: " + b"x" * 600 + b"\n", b": " + b"x" * 600])
def test_an_event_without_an_end_does_not_fill_the_memory(endless: bytes):
    decoder = SseDecoder(LIMIT)
    with pytest.raises(ChatShellUnavailable):
        for _ in range(3):
            decoder.feed(endless)


def test_comments_are_not_kept():
    assert decoded([b": heartbeat\n"] * 1_000) == []
