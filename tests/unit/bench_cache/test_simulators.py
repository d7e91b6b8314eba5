"""The rules of providers, each against cases that were counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.cache.simulators import SIMULATORS, Block, Marker, Sent, Simulator, TokenStep, WholeUnit


def sent(*parts: bytes, marks: tuple[int, ...] = (), blocks: tuple[int, ...] = ()) -> Sent:
    return Sent(parts=parts, blocks=blocks or (1,) * len(parts), marks=marks, breakpoints=marks)


def tokens(letter: str, count: int) -> bytes:
    return letter.encode() * 4 * count


@pytest.mark.parametrize("simulator", SIMULATORS.values(), ids=SIMULATORS)
def test_nothing_is_cached_at_first(simulator: type[Simulator]):
    assert simulator().cached_tokens(sent(tokens("a", 5_000), marks=(0,))) == 0


@pytest.mark.parametrize("simulator", SIMULATORS.values(), ids=SIMULATORS)
def test_what_is_sent_twice_is_read_whole(simulator: type[Simulator]):
    provider, request = simulator(), sent(b"", tokens("a", 3_000), tokens("b", 77), marks=(1, 2))

    provider.cached_tokens(request)

    assert provider.cached_tokens(request) == provider.whole_tokens(request) > 3_000


@pytest.mark.parametrize(
    ("shared", "cached"), [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152), (2_000, 1_920)]
)
def test_token_steps(shared: int, cached: int):
    provider = TokenStep()
    provider.cached_tokens(sent(tokens("a", shared), tokens("b", 900)))

    assert provider.cached_tokens(sent(tokens("a", shared), tokens("c", 900))) == cached
    assert provider.whole_tokens(sent(tokens("a", shared))) == cached


@pytest.mark.parametrize(("shared", "cached"), [(15, 0), (16, 16), (31, 16), (32, 32)])
def test_blocks(shared: int, cached: int):
    provider = Block()
    provider.cached_tokens(sent(tokens("a", shared) + tokens("b", 40)))

    assert provider.cached_tokens(sent(tokens("a", shared) + tokens("c", 40))) == cached
    assert provider.whole_tokens(sent(tokens("a", shared))) == cached


def test_a_shared_beginning_ends_inside_of_a_part():
    provider = Block()
    provider.cached_tokens(sent(b"", tokens("a", 16), tokens("b", 20) + tokens("x", 20)))
    provider.cached_tokens(sent(b"", tokens("a", 16), tokens("b", 40) + tokens("x", 20)))

    assert provider.cached_tokens(sent(b"", tokens("a", 16), tokens("b", 36) + tokens("c", 9))) == 16 + 32


def test_any_earlier_request_counts_not_the_last_alone():
    provider = Block()
    for letter in "ab":
        provider.cached_tokens(sent(tokens(letter, 64)))

    assert provider.cached_tokens(sent(tokens("a", 64), tokens("c", 64))) == 64


@pytest.mark.parametrize(("distance", "cached"), [(0, 16), (1, 16), (20, 16), (21, 0)])
def test_a_mark_looks_back_twenty_blocks(distance: int, cached: int):
    provider = Marker()
    provider.cached_tokens(sent(tokens("a", 16), marks=(0,)))
    later = (tokens("a", 16), *(tokens("b", 1) for _ in range(distance)))

    assert provider.cached_tokens(sent(*later, marks=(distance,))) == cached


@pytest.mark.parametrize(("between_blocks", "cached"), [(19, 16), (20, 0)])
def test_a_mark_counts_blocks_and_not_parts(between_blocks: int, cached: int):
    provider = Marker()
    provider.cached_tokens(sent(tokens("a", 16), marks=(0,)))
    later = (tokens("a", 16), tokens("b", 9), tokens("c", 9))

    assert provider.cached_tokens(sent(*later, marks=(2,), blocks=(1, between_blocks, 1))) == cached


def test_only_marked_positions_are_found_and_the_longest_of_them():
    provider = Marker()
    first = (tokens("a", 16), tokens("b", 16), tokens("c", 16))
    provider.cached_tokens(sent(*first, marks=(0, 1)))

    assert provider.cached_tokens(sent(*first, tokens("d", 16), marks=(0, 3))) == 32
    assert provider.whole_tokens(sent(*first, marks=(0, 1))) == 32
    assert Marker().whole_tokens(sent(*first)) == 0


def test_a_unit_is_found_only_whole():
    provider = WholeUnit()
    provider.cached_tokens(sent(tokens("a", 16)))
    provider.cached_tokens(sent(tokens("a", 16), tokens("b", 16)))

    assert provider.cached_tokens(sent(tokens("a", 16), tokens("c", 16))) == 16
    assert provider.cached_tokens(sent(tokens("a", 16), tokens("b", 16), tokens("d", 16))) == 32
    assert provider.cached_tokens(sent(tokens("a", 8), tokens("d", 16))) == 0


@given(st.lists(st.lists(st.sampled_from([b"aaaa" * 20, b"aaaa" * 9, b"b" * 70]), min_size=1), min_size=2, max_size=8))
def test_no_rule_reads_more_than_is_sent(requests: list[list[bytes]]):
    providers = [simulator() for simulator in SIMULATORS.values()]
    for parts in requests:
        request = sent(*parts, marks=(len(parts) - 1,))
        for provider in providers:
            assert 0 <= provider.cached_tokens(request) <= provider.whole_tokens(request)
