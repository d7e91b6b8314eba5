"""What the user wrote in a conversation: they learn nothing when it is said again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from shared.disclosure import chinese
from shared.disclosure.canonical import han_in, pieces, plain, words_in
from shared.disclosure.english import find_bases_of, stem_of

MAX_USER_CHARACTERS = 20_000
"""The newest of the user's words; what they wrote before counts no more."""


@dataclass(frozen=True, slots=True)
class OwnWords:
    """The user's words in lower case, their stems and regular bases, Chinese without blanks, special spellings."""

    words: frozenset[str]
    stems: frozenset[str]
    bases: frozenset[str]
    han: str
    han_words: frozenset[str]
    spellings: Mapping[str, str]

    @classmethod
    def of(cls, user_text: str) -> "OwnWords":
        """Read the user's messages, joined by line breaks."""
        newest = user_text[-MAX_USER_CHARACTERS:]
        found = pieces(newest)
        words, texts = words_in(found), han_in(found)
        bases = chain.from_iterable(find_bases_of(word.removesuffix("'s")) for word in words)
        return cls(
            words=words,
            stems=frozenset(map(stem_of, words)),
            bases=frozenset(filter(str.isalpha, bases)),
            han="\n".join(texts),
            han_words=frozenset(chain(*map(chinese.segment, texts))),
            spellings=_spellings(plain(newest).split()),
        )

    def holds(self, word: str) -> bool:
        """Whether an English word or a form of it is the user's."""
        return word in self.words or (word.isalpha() and not self.bases.isdisjoint(find_bases_of(word)))

    def holds_content(self, content: str) -> bool:
        """Whether a word of content is the user's: the stem of an English one, or a Chinese one."""
        return content in self.stems or self.holds_han(content)

    def holds_han(self, word: str) -> bool:
        """Whether a Chinese word is the user's; a single character only where it was a word by itself."""
        return word in self.han_words or (len(word) > 1 and word in self.han)


def _spellings(written: Iterable[str]) -> dict[str, str]:
    """Return by its lower case each word that is written with a capital behind its first letter."""
    bare = (word.strip(".,;:?!()\"'") for word in written)
    return {
        word.casefold(): word for word in bare if word.isalnum() and word.isascii() and word[1:] != word[1:].lower()
    }
