"""Chinese text cut into words, as far as telling general words from names needs it."""

from collections.abc import Iterator

from chat_shell.sealed.gate.folding import STOP_CHARACTERS
from chat_shell.sealed.gate.word_lists import CHINESE_DICTIONARY, LONE_CHARACTERS

_LONGEST_WORD = 4
_LONE = "".join(sorted(LONE_CHARACTERS))
_WORD_COST, _STOP_COST, _LONE_COST = 10, 7, 13
"""A cut with fewer words is likelier; a lone character that is no joining word is the sign of a name."""


def segment(han: str) -> list[str]:
    """Cut a stretch of Chinese characters into words, places and single characters, as few as can be."""
    end_of_text = len(han)
    costs, starts = [0] + [_WORD_COST * 2 * end_of_text] * end_of_text, [0] * (end_of_text + 1)
    for start, character in enumerate(han):
        shelf, cost = CHINESE_DICTIONARY.shelf(character), costs[start]
        for end in range(start + 1, min(start + _LONGEST_WORD, end_of_text) + 1):
            if end == start + 1:
                total = cost + (_STOP_COST if character in STOP_CHARACTERS else _LONE_COST)
            elif f"\n{han[start:end]}\n" in shelf:
                total = cost + _WORD_COST
            else:
                continue
            if total < costs[end]:
                costs[end], starts[end] = total, start
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


def _cut(han: str, starts: list[int]) -> list[str]:
    found: list[str] = []
    end = len(han)
    while end:
        found.append(han[starts[end] : end])
        end = starts[end]
    return found[::-1]
