"""English words: which of them are known, which are everyday, and which are forms of one another."""

from collections.abc import Iterator
from functools import cache, lru_cache

from shared.disclosure.word_lists import idioms, lines, members, ranks

FORMS = {
    "y": ("y", "ies"), "u": ("y", "ied"), "s": ("", "s"), "e": ("", "es"), "d": ("", "ed"), "p": ("e", "ed"),
    "g": ("", "ing"), "h": ("e", "ing"), "l": ("", "ly"), "n": ("", "ness"), "r": ("", "er"),
}  # fmt: skip
"""By the letter that stands for it in the dictionary: what a regular form cuts off its base, and what it adds."""

_DERIVED = "lnr"
"""Of these forms those that are words of their own."""

_DERIVATIONS = (
    *FORMS.values(), ("y", "ily"), ("e", "er"), ("", "est"), ("", "less"), ("", "ful"), ("", "able"), ("e", "able"),
    ("", "ment"), ("e", "ion"), ("", "ion"), ("e", "or"), ("", "or"), ("y", "iness"),
)  # fmt: skip
_PREFIXES = ("un", "re", "non", "mis", "over", "under", "pre")
_SHORTEST_PREFIXED, _SHORTEST_SUFFIXED, _SHORTEST_INFLECTED = 4, 5, 3
_AUXILIARIES = frozenset(
    ("do", "does", "did", "is", "are", "was", "were", "have", "has", "had", "could", "should", "would", "must", "need")
)
_PRONOUNS = frozenset(
    ("i", "you", "he", "she", "it", "we", "they", "that", "this", "there", "here", "who", "what", "where", "how", "let")
)
_SHORTENED = frozenset(("m", "s", "d", "ll", "ve", "re"))
_SPELLINGS = (
    ("isation", "ization"), ("ise", "ize"), ("ising", "izing"), ("yse", "yze"), ("our", "or"), ("tre", "ter"),
    ("bre", "ber"), ("ogue", "og"), ("ence", "ense"), ("gement", "gment"), ("amme", "am"),
)  # fmt: skip
"""Of the regular differences between British and American spelling, those that make no other word of one."""

_RECURRING = frozenset(("every", "each"))
_SAYS_THE_SAME = {"day": ("day", "daily"), "year": ()}
"""By a span of time, what says that it comes again, where that is not one stem."""

_SHORTEST_SPELLED = 5
_LETTERS = frozenset("ai")
_DOUBLING = frozenset(("ed", "ing", "ings"))
"""Endings before which the last consonant of a word is doubled."""

_NOUNS = tuple((cut, ending) for ending in ("ment", "ness", "al", "ation", "ion") for cut in ("", "e"))
"""What names an act or a state instead of its verb or adjective cuts off and adds."""

_FUNCTION_RANK = 150
_JOINING_RANK = 60
_LAYERS = 2
"""Endings and prefixes of a derivation, one after the other: audit, auditor, auditors."""

UNRANKED = 60_000
"""The rank that stands for every word that is not everyday."""


def is_known(word: str) -> bool:
    """Whether a word in lower case is in the dictionary, as itself or as one of the regular forms stated there."""
    word = word.rpartition("-")[2]
    return _is_listed(word) or word in _LETTERS or is_contraction(word) or _is_prefixed(word) or _is_suffixed(word)


def is_of_language(word: str) -> bool:
    """Whether a word is in the dictionary, or a quantity."""
    return is_known(word) or is_quantity(word)


@lru_cache(maxsize=32_768)
def is_everyday(word: str) -> bool:
    """Whether a word is everyday, or known and a regular form of such a one; a time that comes again is not."""
    return word not in members("english_times") and is_known(word) and _is_derived(word.rpartition("-")[2], _LAYERS)


def is_quantity(word: str) -> bool:
    """Whether a word is a numeral but one, a date, a feast, a unit or a currency, or a form of one."""
    return not members("english_quantities").isdisjoint(quantity_bases(word))


def quantity_bases(word: str) -> Iterator[str]:
    """Yield a word, and what it may be the plural, the adverb or the past of: "halves", "thirdly", "doubled"."""
    yield word
    for cut, ending in (("y", "ies"), ("", "es"), ("", "s"), ("e", "ed"), ("", "ly")):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_PREFIXED:
            yield word.removesuffix(ending) + cut


def find_bases_of(word: str) -> Iterator[str]:
    """Yield a word, and each whose plural, past or the like it is by its ending: of a known word only known ones.

    What does a thing ("center", "keeper"), and how or what it is, is another word than the thing.
    """
    yield word
    for flag, (cut, ending) in FORMS.items():
        base = word.removesuffix(ending) + cut
        is_form = flag not in _DERIVED and word.endswith(ending) and len(base) >= _SHORTEST_INFLECTED
        if is_form and (is_known(base) or not is_known(word)):
            yield base


def parts_of_word(word: str) -> tuple[str, ...]:
    """Return a word and, of one with a hyphen, what the hyphen joins a beginning to: that is what it says."""
    return (word, word.rpartition("-")[2]) if "-" in word else (word,)


def is_span(word: str) -> bool:
    """Whether a word is a span of time in the singular, with or without an ending of possession."""
    return word.removesuffix("'s") in members("english_spans")


def is_measuring(word: str) -> bool:
    """Whether a word before a span of time makes a quantity of it: "a month", "each year", "within the week"."""
    return word in members("english_measuring")


def find_recurring_stems(span: str, before: str) -> frozenset[str]:
    """Return the stems of what says the same as a span of time that comes again: of "every day" those of day and daily.

    There are none where the word before the span does not say that it comes again, and none of a year: what comes each
    year has a date, by a feast or a season that no list has.
    """
    says = _SAYS_THE_SAME.get(span, (span,)) if before in _RECURRING else ()
    return frozenset(map(stem_of, says))


def is_function_word(word: str) -> bool:
    """Whether a word is among those that join others and say nothing by themselves."""
    return word in _LETTERS or ranks("english_everyday").get(word, UNRANKED) < _FUNCTION_RANK or is_contraction(word)


def joins_only(word: str) -> bool:
    """Whether a word is among the most frequent of those that join others: "part" and "day" are not."""
    return word in _LETTERS or ranks("english_everyday").get(word, UNRANKED) < _JOINING_RANK or is_contraction(word)


def stem_rank(of: str) -> int:
    """Return the rank of the most frequent everyday word with this stem; `UNRANKED` where there is none."""
    return _stem_ranks().get(of, UNRANKED)


@lru_cache(maxsize=32_768)
def stem_of(word: str) -> str:
    """Return one form for a word's regular and irregular ones: "control" of "pre-controlled", "keep" of "kept"."""
    word = word.removesuffix("'s").rpartition("-")[2]
    word = _irregular().get(word, word)
    for ending in ("ings", "ing", "ies", "ied", "ed", "es", "ly", "s"):
        is_ending = word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_INFLECTED
        if is_ending and not word.endswith("ss"):
            base = word[: -len(ending)]
            word = _with_one_consonant(base) if ending in _DOUBLING else base
            break
    word = next(_verbs_or_adjectives(word), word)
    return word[:-1] if len(word) > _SHORTEST_INFLECTED and word[-1] in "ey" else word


@lru_cache(maxsize=32_768)
def one_spelling(word: str) -> str:
    """Return the American spelling of a word that has two, so that the choice between them carries nothing."""
    for british, american in _SPELLINGS:
        if british in word and len(word) > _SHORTEST_SPELLED:
            other = american.join(word.rsplit(british, 1))
            if _is_listed(other) and word in _dictionary("english_british"):
                return other
    return word


def is_contraction(word: str) -> bool:
    """Whether a word with an apostrophe is a regular contraction."""
    pronoun, _, verb = word.partition("'")
    return (pronoun in _PRONOUNS and verb in _SHORTENED) or (
        word.endswith("n't") and word[:-3] in _AUXILIARIES.union(("ca", "wo"))
    )


def _verbs_or_adjectives(noun: str) -> Iterator[str]:
    """Yield what a listed noun names as an act or a state: "approve" of "approval", "weak" of "weakness"."""
    for cut, ending in _NOUNS if _is_listed(noun) else ():
        base = noun.removesuffix(ending)
        if base != noun and len(base) >= _SHORTEST_PREFIXED and _is_listed(base + cut):
            yield base + cut


def _with_one_consonant(base: str) -> str:
    """Return "plan" for what is left of "planning", and "sell" for what is left of "selling": the commoner word."""
    rank = ranks("english_everyday").get
    is_doubled = base[-1:] == base[-2:-1] and rank(base[:-1], UNRANKED) < rank(base, UNRANKED)
    return base[:-1] if is_doubled else base


@cache
def _irregular() -> dict[str, str]:
    return dict(line.split() for line in lines("english_irregular"))


def _is_listed(word: str) -> bool:
    return word in ranks("english_everyday") or word in _dictionary("english_dictionary")


def _is_prefixed(word: str) -> bool:
    """Whether a word is a listed one behind a prefix that can stand before any: "unwatched", "overpaid"."""
    return any(
        word.startswith(prefix) and _is_listed(word[len(prefix) :])
        for prefix in _PREFIXES
        if len(word) - len(prefix) >= _SHORTEST_PREFIXED
    )


def _is_suffixed(word: str) -> bool:
    """Whether a word is the plural of a listed one, or who or what does it: "hirings", "approvers"."""
    singular = word.removesuffix("s")
    bases = (singular, *((singular[:-2], singular[:-1]) if singular.endswith("er") else ()))
    return any(len(base) >= _SHORTEST_SUFFIXED and base[-1] != "s" and _is_listed(base) for base in bases)


def _is_derived(word: str, layers: int) -> bool:
    is_base = word in ranks("english_everyday") or word in _LETTERS or is_contraction(word)
    return is_base or (layers > 0 and any(_is_derived(base, layers - 1) for base in _bases(word)))


@cache
def idiom_lengths() -> frozenset[int]:
    """Return the numbers of words that English idioms have."""
    return frozenset(len(idiom.split()) for idiom in idioms() if idiom.isascii())


def _bases(word: str) -> Iterator[str]:
    """Yield what a word may be a regular form of, the word in a double consonant among it ("planned")."""
    for cut, ending in _DERIVATIONS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            base = word[: len(word) - len(ending)]
            yield base + cut
            if len(base) > 3 and base[-1] == base[-2]:
                yield base[:-1]
    for prefix in _PREFIXES:
        if word.startswith(prefix):
            yield word[len(prefix) :]


@cache
def _stem_ranks() -> dict[str, int]:
    found: dict[str, int] = {}
    for word, rank in ranks("english_everyday").items():
        found.setdefault(stem_of(word), rank)
    return found


@cache
def _dictionary(name: str) -> frozenset[str]:
    return frozenset(_with_forms(name))


def _with_forms(name: str) -> Iterator[str]:
    for line in lines(name):
        base, _, flags = line.partition("/")
        yield base
        for flag in flags:
            cut, ending = FORMS[flag]
            yield base.removesuffix(cut) + ending
