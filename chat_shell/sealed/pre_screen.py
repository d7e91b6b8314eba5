"""The pre-screen: refuse requests that restricted access never answers, before anything is retrieved or charged.

What decides is what a clause wants: a value, a name, a list, wording, a definition, structure or a yes or no about a
fact is refused whatever its topic is; a risk, a gap, a priority, a cause or advice passes. A refusal here saves a
search and a model call, and tells attackers less. A request that is missed is still checked by the gate, so a miss
costs little, while a false alarm costs a useful answer. `pre_screen_patterns` has the grammar of each language.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path

from shared.disclosure import english
from shared.disclosure.canonical import plain
from shared.disclosure.subjects import find_subjects
from shared.disclosure.word_lists import lines
from shared.models.safe_summary import PolicyRefusal

MAX_CHARACTERS = 20_000
"""Only the end of a longer text is read, because the question is usually at its end."""

_PATTERN_FILES = Path(__file__).with_name("pre_screen_patterns")
_FRAGMENT = re.compile(r"([A-Z]+) = (.+)")
_SECTION = re.compile(r"\[(\w+)( if specific)?(?: unless (\w+))?\]")
_NAME_MARK = "¤"
_NAME_START = re.compile(r"(?<=[\w,;:)] )(?=[A-Z][a-z])")
"""Where a word in capitals begins that does not begin its sentence: a name, as far as one can tell."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The patterns of a refusal that hold under the same conditions."""

    refusal: PolicyRefusal
    needs_specific: bool
    spared: str
    """The fragment with which a clause is let pass; empty if there is none."""
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The requests of one language; the first lines of a file of patterns describe its parts."""

    fragments: Mapping[str, re.Pattern[str]]
    rules: tuple[_Rule, ...]

    def refusals(self, text: str) -> Iterator[tuple[PolicyRefusal, bool]]:
        """Yield the refusal of each clause that gets one, and whether the clause guesses at a fact."""
        for clause, is_specific in self._clauses(text):
            wanted = self.fragments["TAIL"].sub("", clause)
            for rule in self.rules:
                if rule.needs_specific > is_specific or (rule.spared and self._has(rule.spared, wanted)):
                    continue
                if rule.pattern.search(clause):
                    yield rule.refusal, self._has("GUESS", clause)

    def _clauses(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield each clause with its request's words replaced by ">", and whether it holds something specific."""
        for line in text[-MAX_CHARACTERS:].splitlines():
            marked = respell(" ".join(plain(_NAME_START.sub(_NAME_MARK, line)).casefold().split()))
            for part in self.fragments["BETWEEN"].split(marked):
                clause = self.fragments["ASIDE"].sub("", part.replace(_NAME_MARK, "").strip())
                is_specific = _NAME_MARK in part or self._has("SPECIFIC", clause)
                yield self.fragments["REQUEST"].sub("> ", clause), is_specific

    def _has(self, fragment: str, clause: str) -> bool:
        return self.fragments[fragment].search(clause) is not None


def pre_screen(last_message: str, query: str) -> PolicyRefusal | None:
    """Return the refusal that the user's last message or the main model's query gets, or None.

    Whom or what a message names, it asks about; a query has capitals of its own.
    """
    found = {refusal for refusal, _ in _refusals(last_message, query)}
    if any(find_subjects(last_message[-MAX_CHARACTERS:])):
        found.add(PolicyRefusal.KNOWLEDGE_BASE_QUESTION)
    return min(found, key=_ORDER.index, default=None)


def is_open_ask(last_message: str, query: str) -> bool:
    """Tell whether a refused text merely asks: it guesses at no fact by a yes or no, a figure or a quoted phrase."""
    return not any(guesses for _, guesses in _refusals(last_message, query))


def read_grammar(lines: str) -> Grammar:
    """Read a file of patterns.

    Raises:
        ValueError: a section names no policy refusal.
    """
    fragments: dict[str, str] = {}
    patterns: dict[tuple[PolicyRefusal, bool, str], list[str]] = {}
    current: list[str] = []
    for line in filter(None, lines.splitlines()):
        if line.startswith("#"):
            continue
        if section := _SECTION.fullmatch(line):
            current = patterns.setdefault((PolicyRefusal(section[1]), bool(section[2]), (section[3] or "").upper()), [])
            continue
        filled = re.sub(r"<([A-Z]+)>", lambda name: fragments[name[1]], line)
        if fragment := _FRAGMENT.fullmatch(filled):
            fragments[fragment[1]] = fragment[2]
        else:
            current.append(f"(?:{filled})")
    rules = tuple(_Rule(*key, re.compile("|".join(found))) for key, found in patterns.items())
    return Grammar({name: re.compile(text) for name, text in fragments.items()}, rules)


def _refusals(*texts: str) -> Iterator[tuple[PolicyRefusal, bool]]:
    return (found for grammar in _GRAMMARS for text in texts for found in grammar.refusals(text))


_ORDER = (
    PolicyRefusal.INJECTION_SUSPECTED,
    PolicyRefusal.ENCODING,
    PolicyRefusal.POLICY_PROBE,
    PolicyRefusal.STRUCTURE,
    PolicyRefusal.VERBATIM,
    PolicyRefusal.DEFINITION,
    PolicyRefusal.ENUMERATION,
    PolicyRefusal.EXACT_VALUE,
    PolicyRefusal.KNOWLEDGE_BASE_QUESTION,
    PolicyRefusal.OUT_OF_SCOPE,
)
"""Of several refusals that match, the first in this order is returned."""

_GRAMMARS = tuple(read_grammar(file.read_text(encoding="utf-8")) for file in sorted(_PATTERN_FILES.glob("*.txt")))


_FREQUENT_WORDS = 4_000
_NAMES = ("english_given_names", "english_surnames")

_UNMARKED_WORD = re.compile(r"(?<![\w¤'-])[a-z]{3,20}(?![\w'-])")


def respell(text: str) -> str:
    """Return a text in lower case with the frequent words that its unknown words were probably meant to be."""
    return _UNMARKED_WORD.sub(lambda word: _slips().get(word[0], word[0]), text)


@cache
def _slips() -> Mapping[str, str]:
    words = islice(lines("english_everyday"), _FREQUENT_WORDS)
    names = frozenset(chain.from_iterable(map(lines, _NAMES)))
    # the most frequent word comes last, so that it stays where two words have a slip in common
    return {slip: word for word in reversed(list(words)) for slip in _slips_of(word) if not _is_word(slip, names)}


def _is_word(slip: str, names: frozenset[str]) -> bool:
    return slip in names or english.is_known(slip) or english.is_quantity(slip)


def _slips_of(word: str) -> Iterator[str]:
    """Yield a word with a slip behind its first letter, which is seldom wrong."""
    for place in range(1, len(word)):
        yield word[:place] + word[place + 1 :]
        yield word[:place] + word[place : place + 2][::-1] + word[place + 2 :]
