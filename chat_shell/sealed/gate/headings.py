"""What a heading says behind its number and before its note: "3.1 Quiet orchard", "第三章 枯井换水(试行)"."""

import re
from collections.abc import Iterable, Iterator

_PARTS = "chapter|section|part|appendix|annex|step|phase|stage|article|§"
_HAN_NUMERALS = "0-9一二三四五六七八九十百"
_NUMBER = re.compile(
    rf"^(?:(?:{_PARTS}) {{0,2}}[0-9A-Z]{{1,3}}\b|[IVX]{{1,5}}[.)]|[A-Z][.)]"
    r"|[0-9]{1,2}(?:\.[0-9]{1,2}){0,3}[.)]?(?=[ :])"
    rf"|第[{_HAN_NUMERALS}]{{1,4}}[章节条部分篇]|附[录件][{_HAN_NUMERALS}A-Z]{{0,3}}|[(（]?[{_HAN_NUMERALS}]{{1,3}}[)）、])"
    r"[ .:：、–—-]{0,4}",
    re.IGNORECASE,
)
_NOTE = re.compile(r" {0,3}(?:[(（][^()（）]{1,40}[)）]|\{#[^{}\s]{1,40}\}) {0,3}$")


def with_bare(headings: Iterable[str]) -> Iterator[str]:
    """Yield headings, and what is left of each without its number and its note."""
    for heading in headings:
        yield heading
        bare = _NOTE.sub("", _NUMBER.sub("", heading, count=1))
        if bare and bare != heading:
            yield bare
