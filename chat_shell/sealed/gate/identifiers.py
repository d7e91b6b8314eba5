"""Check `identifiers`: no name, acronym, heading, title, table head or defined term of the chunks.

What the user wrote himself is free, and so are general words. Terms are read out of the chunks' text as written, for
their capitals and markup, and are compared in the gate's normal form.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from chat_shell.sealed.gate.chinese import segment
from chat_shell.sealed.gate.folding import fold, han_only, stem
from chat_shell.sealed.gate.name_forms import NameForms, varies_a_name
from chat_shell.sealed.gate.terms import NO_TERMS, ChunkSource, Terms, introduced_terms_of, terms_of
from chat_shell.sealed.gate.word_lists import STOP_WORDS, is_known
from shared.plain_text.normal_form import spaced_and_cjk, split_words

_SHORTEST_JOINED = 5
"""A name of fewer letters is found by chance where two words are read as one."""

_SHORTEST_SINGULAR = 3
_ES = ("ses", "xes", "zes", "ches", "shes", "oes")
_LONGEST_PHRASE = 8
_LONGEST_HAN = 16


@dataclass(frozen=True)
class Identifiers:
    """The terms of the chunks that the user did not write, ready to be looked for."""

    words: frozenset[str]
    capitals: frozenset[str]
    phrases: frozenset[tuple[str, ...]]
    han: frozenset[str]
    han_guesses: frozenset[str]
    names: NameForms
    phrase_lengths: tuple[int, ...] = field(init=False)
    han_lengths: tuple[int, ...] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "phrase_lengths", tuple(sorted({len(phrase) for phrase in self.phrases})))
        object.__setattr__(self, "han_lengths", tuple(sorted({len(term) for term in self.han | self.han_guesses})))


def identifiers(sources: Sequence[ChunkSource], user_words: str, siblings: Iterable[ChunkSource] = ()) -> Identifiers:
    """Collect the terms of the chunks, less those of the user's text.

    `siblings` are other chunks of the same documents: a term that they introduce is one in the chunks that use it, too.
    """
    folded = fold(user_words)
    own_words, own_han = split_words(folded), han_only(folded)
    own_joined = {*own_words, *_joined(own_words)}
    own_phrases = frozenset(_phrases(_content(own_words), range(1, _LONGEST_PHRASE + 1)))
    used = _used(sources, Terms.of(introduced_terms_of(source) for source in siblings))
    terms = Terms.of((*(terms_of(source) for source in sources), used))
    return Identifiers(
        words=frozenset(word for word in terms.words if word not in own_joined),
        capitals=frozenset(word for word in terms.capitals if word.casefold() not in own_joined),
        phrases=frozenset(_stemmed(terms.phrases) - own_phrases),
        han=frozenset(term[:_LONGEST_HAN] for term in terms.han if term not in own_han),
        han_guesses=frozenset(term for term in terms.han_guesses if term not in own_han),
        names=NameForms.of(terms.names, own_joined),
    )


def names_something(text: str, known: Identifiers) -> bool:
    """Tell whether a raw text holds a term of the chunks, or a name of theirs written otherwise."""
    return (
        names_folded(fold(text), known)
        or not known.capitals.isdisjoint(_raw_words(text))
        or varies_a_name(text, known.names)
    )


def names_folded(folded: str, known: Identifiers) -> bool:
    """Tell whether a text in the gate's normal form holds a term of the chunks, written with any capitals."""
    words = spaced_and_cjk(split_words(folded))[0]
    return (
        not known.words.isdisjoint(words)
        or not known.words.isdisjoint(_singulars(words))
        or not known.words.isdisjoint(joined for joined in _joined(words) if len(joined) >= _SHORTEST_JOINED)
        or not known.phrases.isdisjoint(_phrases(_content(words), known.phrase_lengths))
        or _names_in_han(han_only(folded), known)
    )


def _names_in_han(han: str, known: Identifiers) -> bool:
    spans = [(start, start + length) for length in known.han_lengths for start in range(len(han) - length + 1)]
    if any(han[start:end] in known.han for start, end in spans):
        return True
    guessed = [span for span in spans if han[slice(*span)] in known.han_guesses]
    edges = {0, *accumulate(map(len, segment(han)))} if guessed else set[int]()
    return any(edges.issuperset(span) for span in guessed)


def _used(sources: Sequence[ChunkSource], introduced: Terms) -> Terms:
    """Return those of the introduced terms that stand in the texts of the sources."""
    folded = fold("\n".join(source.text for source in sources)) if introduced != NO_TERMS else ""
    words = spaced_and_cjk(split_words(folded))[0]
    content, han = f" {' '.join(_content(words))} ", han_only(folded)
    return replace(
        NO_TERMS,
        words=introduced.words.intersection(words),
        phrases=frozenset(phrase for phrase in introduced.phrases if _stands_in(phrase, content)),
        han=frozenset(term for term in introduced.han if term in han),
    )


def _stands_in(phrase: str, content: str) -> bool:
    return any(f" {' '.join(stems)} " in content for stems in _stemmed((phrase,)))


def _stemmed(phrases: Iterable[str]) -> set[tuple[str, ...]]:
    contents = (tuple(_content(spaced_and_cjk(split_words(fold(phrase)))[0])) for phrase in phrases)
    return {content[:_LONGEST_PHRASE] for content in contents if len(content) > 1}


def _content(words: list[str]) -> list[str]:
    return [stem(word) for word in words if word not in STOP_WORDS]


def _phrases(content: list[str], lengths: Iterable[int]) -> Iterable[tuple[str, ...]]:
    return (tuple(content[start : start + length]) for length in lengths for start in range(len(content) - length + 1))


def _joined(words: list[str]) -> Iterable[str]:
    """Yield neighbours read as one word: a name that was split is put together again."""
    for length in (2, 3):
        for start in range(len(words) - length + 1):
            parts = words[start : start + length]
            if not all(is_known(part) and part not in STOP_WORDS for part in parts) or length == 2:
                yield "".join(parts)


def _singulars(words: list[str]) -> Iterable[str]:
    for word in words:
        if word.endswith("s") and len(word) > _SHORTEST_SINGULAR:
            yield word[:-1]
            if word.endswith(_ES):
                yield word[:-2]


def _raw_words(text: str) -> list[str]:
    return "".join(character if character.isalnum() else " " for character in text).split()
