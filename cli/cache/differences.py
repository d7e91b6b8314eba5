"""Find where a call differs from an earlier one, and say in words what has happened there."""

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from cli.cache.entries import BY_CHARACTERS, BY_TOKENS, TOKENS_A_PIECE, LoggedCall, parse

_SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a call differs from the one that it should extend: both lines of the log, counted from 1, and the place.

    `path` names a part as `messages[0].content`; `character` counts from 0 within its text, or is None where it is no
    text; `before` and `now` are what stands there, cut, and `says` is what has happened, in words.
    """

    line: int
    earlier_line: int
    path: str
    character: int | None
    before: str
    now: str
    says: str


def find_difference(before: LoggedCall, call: LoggedCall) -> Difference:
    """Find the first place where a call differs from an earlier one that it does not begin with."""
    at = length_shared(before.pieces, call.pieces)
    gone, come = (each.pieces[at] if at < len(each.pieces) else "" for each in (before, call))
    path, character = (call if come else before).path(at), None
    if at == len(before.pieces):
        path, gone, come, says = "model", before.model, call.model, "has changed"
    elif not come:
        says = "has disappeared from the end"
    elif call.name == BY_TOKENS:
        tokens, later = gone.split(), come.split()
        shared = length_shared(tokens, later)
        path = f"{BY_TOKENS}[{at * TOKENS_A_PIECE + shared}]"
        gone, come, says = " ".join(tokens[shared:]), " ".join(later[shared:]), "has changed"
    elif at < len(call.lead) and sorted(call.pieces[: len(call.lead)]) == sorted(before.pieces[: len(before.lead)]):
        says = "the same tools stand in another order"
        path, character, gone, come = _walk(path, parse(gone), parse(come))
    elif come in before.pieces[at:]:
        says = "what stood here has disappeared"
    elif gone in call.pieces[at:]:
        says = "something stands before what stood here"
    else:
        says = "has changed"
        path, character, gone, come = _walk(path, parse(gone), parse(come))
    if call.name == BY_CHARACTERS and character is not None:
        character += sum(len(each) for each in call.pieces[:at])
        is_reordered = at < call.head and parts_of_head(before) == parts_of_head(call)
        says = "the same lines or tools stand in another order" if is_reordered else says
    return Difference(call.place + 1, before.place + 1, path, character, _shorten(gone), _shorten(come), says)


def parts_of_head(call: LoggedCall) -> list[str]:
    """Return the parts of a rendered head, sorted: its lines, and what stands between the brackets of tools there."""
    return sorted(re.split(r"[\n\[\]{}]", "".join(call.pieces[: call.head])))


def _walk(path: str, before: object, now: object) -> tuple[str, int | None, str, str]:
    """Go down to the first part that differs: its path, the character of a text, and both texts from there on."""
    match before, now:
        case dict(), dict():
            earlier, later = cast("dict[str, object]", before), cast("dict[str, object]", now)
            for key in dict.fromkeys([*earlier, *later]):
                if earlier.get(key) != later.get(key):
                    return _walk(f"{path}.{key}", earlier.get(key), later.get(key))
            return path, None, " ".join(earlier), " ".join(later)
        case list(), list():
            earlier_items, later_items = cast("list[object]", before), cast("list[object]", now)
            at = length_shared(earlier_items, later_items)
            items = [each[at] if at < len(each) else None for each in (earlier_items, later_items)]
            return _walk(f"{path}[{at}]", *items)
        case str(), str():
            at = _length_of_text(before, now)
            return path, at, before[at:], now[at:]
        case _:
            return path, None, json.dumps(before, ensure_ascii=False), json.dumps(now, ensure_ascii=False)


def length_shared(before: Sequence[object], now: Sequence[object]) -> int:
    """Return how many items both have at their beginning."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((at for at, (earlier, later) in pairs if earlier != later), min(len(before), len(now)))


def _length_of_text(before: str, now: str) -> int:
    """Return how many characters both have at their beginning, compared by halves."""
    shorter = min(len(before), len(now))
    return bisect_left(range(shorter), True, key=lambda at: before[: at + 1] != now[: at + 1])


def share_of_text(before: str, now: str) -> float:
    """Return what two texts have in common at their beginnings and ends, as a share of the longer one."""
    start = _length_of_text(before, now)
    end = _length_of_text(before[start:][::-1], now[start:][::-1])
    return (start + end) / max(len(before), len(now), 1)


def _shorten(text: str) -> str:
    shown = text[:_SHOWN_CHARACTERS].encode(errors="replace").decode()
    return shown if len(text) <= _SHOWN_CHARACTERS else shown + "…"
