"""The scan of JSON text agrees with a parser, wherever the text is cut."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.errors import InvalidRequest
from shared.models.json_bounds import JsonBounds, JsonScanner
from tests.examples import examples

WIDE = JsonBounds()
TEXTS = st.text(max_size=6) | st.sampled_from(['"', "\\", '\\"', "\\\\", "[{,:]}", "\0", "\u4e2d" * 700, "a" * 1100])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(2**62, 2**66) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def scan(text: bytes, cuts: list[int], bounds: JsonBounds = WIDE) -> JsonScanner:
    scanner = JsonScanner(bounds)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        scanner.feed(text[start:end])
    scanner.end()
    return scanner


class Measured:
    """What a parser finds in a value, in the words of the bounds."""

    def __init__(self, value: object) -> None:
        self.values = self.deepest = 0
        self.keys: list[str] = []
        self.numbers: list[int | float] = []
        self.strings: list[str] = []
        self._read(value, 1)

    def _read(self, value: object, depth: int) -> None:
        inside: list[object] = []
        if isinstance(value, list):
            inside = cast("list[object]", value)
        elif isinstance(value, dict):
            members = cast("dict[str, object]", value)
            self.keys += members
            inside = list(members.values())
        elif isinstance(value, str):
            self.strings.append(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.numbers.append(value)
        if isinstance(value, list | dict):
            self.values += max(1, len(inside))
            self.deepest = max(self.deepest, depth)
        for inner in inside:
            self._read(inner, depth + 1)


def raw_bytes(text: str, *, is_ascii: bool) -> int:
    return len(json.dumps(text, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")) - 2


@given(value=VALUES, cuts=st.lists(st.integers(0, 5000), max_size=6), is_ascii=st.booleans(), blanks=st.booleans())
@example(value={"a": 2**64}, cuts=[8, 9], is_ascii=False, blanks=False)
@example(value=["\\" * 1024], cuts=list(range(40)), is_ascii=True, blanks=False)
@examples(200)
def test_every_bound_is_refused_beyond_what_is_there_and_at_no_less(
    value: object, cuts: list[int], *, is_ascii: bool, blanks: bool
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=1 if blanks else None).encode("utf-8", "surrogatepass")
    found = Measured(value)
    lengths = [raw_bytes(each, is_ascii=is_ascii) for each in (*found.strings, *found.keys)]
    keys = [raw_bytes(each, is_ascii=is_ascii) for each in found.keys]
    exact = JsonBounds(
        values=found.values,
        depth=found.deepest,
        key_bytes=max([1024, *keys]),
        string_bytes=max([0, *lengths]),
        number_bytes=max([0, *(len(repr(number)) for number in found.numbers)]) + 19,
    )
    scanner = scan(text, cuts, exact)
    assert (scanner.values, scanner.deepest) == (found.values, found.deepest)
    assert scanner.has_nul == any("\0" in each for each in (*found.strings, *found.keys))
    assert scanner.has_large_number == any(
        isinstance(number, int) and not -(2**63) <= number < 2**64 for number in found.numbers
    )
    spans = [json.loads(b'"%b"' % text[span.start : span.end]) for span in scanner.long_strings]
    assert sorted(spans) == sorted(
        each for each, length in zip((*found.strings, *found.keys), lengths, strict=True) if length >= 1024
    )
    for smaller, is_there in (
        (replace(exact, values=found.values - 1), found.values > 0),
        (replace(exact, depth=found.deepest - 1), found.deepest > 0),
        (replace(exact, string_bytes=max([0, *lengths]) - 1), any(lengths)),
        (replace(exact, key_bytes=max([1024, *keys]) - 1), max([0, *keys]) > 1024),
    ):
        if is_there:
            with pytest.raises(InvalidRequest):
                scan(text, cuts, smaller)


@given(text=st.binary(max_size=60) | st.text('[]{},:"\\ue1', max_size=60).map(str.encode), cut=st.integers(0, 60))
@examples(200)
def test_text_that_is_no_json_is_scanned_without_any_other_error(text: bytes, cut: int) -> None:
    try:
        whole = scan(text, [])
    except InvalidRequest:
        with pytest.raises(InvalidRequest):
            scan(text, [cut])
    else:
        assert scan(text, [cut]).values == whole.values


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"[" + b"1," * 20_000 + b"1]", "16384 values"),
        (b'"' * 100_000, "16384 values"),
        (b"[" * 2000, "1000 levels"),
        (b"]", "closes more"),
        (b'{"' + b"k" * 1025 + b'" :1}', "key"),
        (b'["' + b"x" * 10_485_761 + b'"]', "string"),
        (b"[" + b"1" * 8193 + b"]", "8192 characters"),
        (b" " * 4_194_305, "4194304 bytes outside"),
        (b"\\" * 4_194_305, "4194304 bytes outside"),
    ],
)
def test_a_refusal_names_its_bound(text: bytes, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        scan(text, [])


def test_an_image_may_be_longer_than_any_text() -> None:
    assert scan(b'["data:' + b"A" * 11_000_000 + b'"]', []).long_strings


def test_a_number_at_the_very_end_is_read() -> None:
    assert scan(b"99999999999999999999", [7]).has_large_number
