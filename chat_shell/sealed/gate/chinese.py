"""Chinese text cut into words, as far as telling general words from names needs it."""

from collections.abc import Iterator

from chat_shell.sealed.gate.folding import STOP_CHARACTERS
from chat_shell.sealed.gate.word_lists import LONE_CHARACTERS, is_chinese_place, is_chinese_word

_LONGEST_WORD = 4
_LONE = "".join(sorted(LONE_CHARACTERS))
_WORD_COST, _STOP_COST, _LONE_COST = 10, 7, 13
"""A cut with fewer words is likelier; a lone character that is no joining word is the sign of a name."""


def segment(han: str) -> list[str]:
    """Cut a stretch of Chinese characters into words, places and single characters, as few as can be."""
    costs, starts = [0], [0]
    for end in range(1, len(han) + 1):
        lone = _STOP_COST if han[end - 1] in STOP_CHARACTERS else _LONE_COST
        best, start = costs[end - 1] + lone, end - 1
        for length in range(2, min(_LONGEST_WORD, end) + 1):
            cost = costs[end - length] + _WORD_COST
            if cost < best and _is_word(han[end - length : end]):
                best, start = cost, end - length
        costs.append(best)
        starts.append(start)
    return _cut(han, starts)


def unknown_runs(segments: list[str]) -> Iterator[str]:
    """Yield each stretch of two to four characters that no general word explains: what names are made of.

    A stretch of characters each of which is often a word by itself is taken for such words.
    """
    run = ""
    for word in (*segments, ""):
        if len(word) == 1 and word not in STOP_CHARACTERS:
            run += word
            continue
        if len(run) > 1 and not LONE_CHARACTERS.issuperset(run):
            yield from (part for part in {run, run.strip(_LONE)} if 2 <= len(part) <= _LONGEST_WORD)
        run = ""


def _is_word(characters: str) -> bool:
    return is_chinese_word(characters) or is_chinese_place(characters)


def _cut(han: str, starts: list[int]) -> list[str]:
    found: list[str] = []
    end = len(han)
    while end:
        found.append(han[starts[end] : end])
        end = starts[end]
    return found[::-1]
