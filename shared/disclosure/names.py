"""Names of persons in a source: in English a capital decides, in Chinese a surname in the role of a person."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, filterfalse, groupby, pairwise
from typing import NamedTuple

from shared.disclosure import chinese, english
from shared.disclosure.word_lists import lines, members

_WORD = re.compile(r"[A-Za-z][A-Za-z']*")
_PART = re.compile(r"(?:[^.!?:;\n|•\"“”()]|(?<=\b(?:Mr|Ms|Dr))\.|(?<=\b(?:Mrs))\.|(?<=\b(?:Prof))\.)+")
_BARE = re.compile(
    r"(?:^|[.!?] |\n)([A-Z][a-z'-]++) (?:is|was|covers|concerns) (?:the|an?|our|what|any|[a-z]++'s?)\b", re.MULTILINE
)
"""A word without an article of which a sentence says what it is: its capital may be that of a name."""

_PERSONAL = frozenset(["mr", "mrs", "ms", "miss", "dr", "prof", "sir", "madam", "lady", "lord", "captain"])
_DOUBLED = re.compile(r"(?<=[a-z] )[A-Z][a-z]+-[A-Z][a-z]+\b")
"""A family name of two, behind another word."""

_LETTERED = re.compile(r"\b[A-Z][a-z]+ [B-HJ-Z]\b(?!['.-])")
"""A word with a capital and a letter that says which one: a hall, a plan, a gate."""

_NUMBERED = re.compile(r"\b([A-Z][a-z]+)-\d+\b")
"""A word with a capital that a hyphen joins to a number."""

_TITLE_SHARE = 0.6
"""A line in which so many words begin with a capital is a heading, whose capitals name nothing."""

_SHORTEST_HEADING = 2
ORDINARY = 3
"""A word that stands so often without a capital is a word, and names nobody by itself."""

_FULL_NAME = 2
"""Two words with capitals of which the second is a surname are a person's name."""

_SURNAMES = "".join(sorted(name for name in members("chinese_surnames") if len(name) == 1))
_COMPOUND = "|".join(sorted(name for name in members("chinese_surnames") if len(name) > 1))
_LONGEST_NAME = 3
_COUNT = re.compile(r"[一二三四五六七八九十百千万两几每这那某整半多数\d]$")
"""Behind a numeral a family name is a measure: "three sheets"."""

_PARTICLES = frozenset("的了着们吗呢吧啊么")
"""Characters of grammar that are part of no given name."""

RARE_NAME = 8_000
"""A word of the dictionary that is rarer than this may be a name before a title or a plan: what is often is a thing."""

_HAN = "[\u4e00-\u9fff]"
_TITLES, _ROLES, _ACTS = ("|".join(lines(f"chinese_{kind}")) for kind in ("titles", "roles", "acts"))
_TITLE = re.compile(_TITLES)
PLAIN_SURNAME = 700
"""A family name that is more frequent than this as a word ("new", "towards") is read as that word before a title."""

_BY_FAMILY = (re.compile(f"(?=(({_HAN})(?:{_TITLES}|某|姓)))"), re.compile(f"(姓({_HAN}))"))
_BY_CHARACTER = (re.compile(f"(?=([老小阿]({_HAN})))"), re.compile(f"(?=(({_HAN})[哥姐叔姨总工公仔]))"))
_IMPERSONAL = frozenset(("负责人", "联系人", "对接人", "保管人", "主管", "管理员", "总"))
_GIVEN = f"{_HAN}{{1,2}}?"
_NAME = f"((?:{_COMPOUND}|[{_SURNAMES}]){_GIVEN})"
_PERSONAL_TITLES = "先生|女士|老师|同志|师傅|医生|护士|教授|博士|某"
_CERTAIN = (
    re.compile(f"{_NAME}(?:{_PERSONAL_TITLES})"),
    re.compile(f"(?:{_TITLES})(?:为|是|:|：|由|\\s){_NAME}(?={_ROLES}|[,，。、;；:：()（）\\s]|$)"),
    re.compile(f"(?:由|经|找){_NAME}(?:{_ROLES})"),
)
"""How a person is spoken of: a word of the dictionary in such a place is a name, too."""

_LEADS = re.compile(f"(?:{_TITLES}|.*[家员师长医手者生工卫]|保安|司机|[只仅]有|依?靠|依赖|交[给由]|认|问|找|派)$")
_DOES = re.compile(_ACTS)
"""What stands before a person, a trade or a verb, and what a person does."""

_ASKS = re.compile(".*(?:[问找请由让听派认]|交给)$")
"""What stands before a person who is addressed, though the family name alone is said."""

_TITLED = (re.compile(f"{_NAME}(?:{_TITLES})"),)
"""Before a title: a rare word of the dictionary is a name there."""

_BEHIND = f"{_NAME}(?={_ROLES}|[,，、。;；:：()（）\\s]|$)"
_ENTITLED = (re.compile(f"(?:{_TITLES}){_BEHIND}", re.MULTILINE),)
_TRADED = (re.compile(f"{_HAN}[家员师长医手者生]{_BEHIND}", re.MULTILINE),)
"""Behind a title any word is a name, behind a trade a rare one; a compound that a frequent word begins is none."""

_LIKELY = (
    re.compile(f"(?:向|请|归|报|和|与|、|，|。|:|：|^|\\s|\\|){_NAME}(?:{_ROLES})", re.MULTILINE),
    re.compile(f"(?:^|[|:：、,，\\s(（]){_NAME}(?=$|[|、,，\\s)）])", re.MULTILINE),
)
"""Where a person is spoken of as often as a thing is: only what is no word of the dictionary is a name there."""

_PLACES = (
    (_CERTAIN, 0, False), (_ENTITLED, 0, True), (_TITLED, RARE_NAME, False), (_TRADED, RARE_NAME, True),
    (_LIKELY, None, False),
)  # fmt: skip
"""Patterns, each with the rank behind which a word of the dictionary is a name there: 0 for all, None for none; and
whether they say that what stands behind them, whatever follows, is a person's."""


class EnglishNames(NamedTuple):
    """Words of a chunk by how they are written.

    `certain` are words of names of persons; `capital` those with a capital inside a sentence whose neighbours have
    none, and the bare subjects of sentences that say what something is; `plain` those without a capital, all in lower
    case; `never_plain` the first and, where they are not plain, the second. `rows` are the rows of words with capitals,
    words with a letter behind them ("Hall C"), as written, and those with a number; `initials` are the first letters of
    the persons among them.
    """

    certain: frozenset[str]
    capital: frozenset[str]
    plain: frozenset[str]
    never_plain: frozenset[str]
    rows: frozenset[str]
    initials: frozenset[str]


def english_names(text: str, above: Iterable[str]) -> EnglishNames:
    """Read which words of a text are written as names; `above` are its title and headings."""
    parts = [*map(_WORD.findall, (*_PART.findall(text), *above))]
    lower = Counter(map(_bare, filterfalse(_has_capital, chain(*parts))))
    runs = [*chain.from_iterable(map(_runs, parts))]
    rows = [run for _, run in runs if len(run) > 1]
    lone = (run[0] for is_lone, run in runs if is_lone)
    persons = [*filter(_is_personal, rows)]
    named = {word for word in (*map(_bare, chain(*persons)), *_find_doubled(text)) if lower[word] < ORDINARY}
    capitals = map(_bare, (*_BARE.findall(text), *lone))
    certain, capital, plain = (frozenset(filter(_says_something, found)) for found in (named, capitals, lower))
    return EnglishNames(
        certain,
        capital,
        plain,
        never_plain=certain | (capital - plain),
        rows=frozenset((*map(" ".join, rows), *_LETTERED.findall(text), *_NUMBERED.findall(text))),
        initials=frozenset(map(_initials, persons)),
    )


def persons_in(text: str) -> Iterator[str]:
    """Yield the Chinese names of persons of a text.

    A word of the dictionary in a place where things stand as well is a name only if it is rare and stands nowhere else.
    """
    for patterns, rarest, is_behind in _PLACES:
        found = Counter(match[1] for pattern in patterns for match in pattern.finditer(text))
        things = {
            name for name, count in found.items() if _is_thing(name, rarest, is_behind, text.count(name) != count)
        }
        yield from filterfalse(_is_read_through, found.keys() - things)


def _is_thing(name: str, rarest: int | None, is_behind: bool, stands_elsewhere: bool) -> bool:
    first = chinese.segment(name)[0]
    word, least = (first, RARE_NAME) if is_behind and 1 < len(first) < len(name) else (name, rarest)
    is_rare = least is not None and not stands_elsewhere and chinese.han_rank(word) > least
    return least != 0 and not is_rare and chinese.is_known_han(word)


def persons_among(words: Sequence[str]) -> Iterator[str]:
    """Yield the names of persons in a stretch of Chinese that is cut into words, behind what stands before it.

    A family name that is hardly ever a word is one wherever it stands by itself, and one of two characters before a
    lone character; behind another one, and in a rare word that begins like a name, a person is meant where the words
    beside it say so.
    """
    for place, word in enumerate(words[1:], 1):
        before, behind = words[place - 1], words[place + 1 : place + 3]
        is_led = bool(_LEADS.match(before))
        if _is_family(before, word, behind) or (is_led and _is_plain_family(word)):
            names = ("".join((word, *behind[:length])) for length in _find_given_lengths(behind))
            yield from names if is_led else filterfalse(chinese.is_known_han, names)
        elif _is_whole_name(word, behind, is_led):
            yield word


def _is_whole_name(word: str, behind: Sequence[str], is_led: bool) -> bool:
    """Whether a rare word begins like a name, and what stands beside it says that it is a person's."""
    if word[0] not in _SURNAMES or not 1 < len(word) <= _LONGEST_NAME or chinese.han_rank(word) <= RARE_NAME:
        return False
    is_person = is_led and (not behind or word[0] in members("chinese_families"))
    return is_person or bool(_DOES.match("".join(behind)))


def _is_plain_family(word: str) -> bool:
    return word in _SURNAMES and not chinese.is_function_han(word)


def _is_family(before: str, word: str, behind: Sequence[str]) -> bool:
    families = members("chinese_families")
    is_certain = word in families or _has_given_name(word, behind)
    return is_certain and before not in families and not _COUNT.search(before)


def _has_given_name(word: str, behind: Sequence[str]) -> bool:
    """Whether a family name of two characters, which may be a word, stands before a lone one that joins nothing."""
    is_double = len(word) > 1 and word in members("chinese_surnames")
    return is_double and bool(behind) and len(behind[0]) == 1 and not chinese.is_function_han(behind[0])


def _find_given_lengths(behind: Sequence[str]) -> Iterator[int]:
    """Yield how many of the words behind a family name may be the given name: one, or two of one character each."""
    for length in range(1, len(behind) + 1):
        word = behind[length - 1]
        if len("".join(behind[:length])) > _FULL_NAME or chinese.is_function_han(word) or _TITLE.fullmatch(word):
            return
        yield length


def _is_read_through(name: str) -> bool:
    """Whether the dictionary reads a name as a word or two, of which the last joins it to what follows."""
    words = chinese.segment(name)
    is_joined = chinese.is_function_han(words[-1]) and len(words) <= _FULL_NAME
    return is_joined or not _PARTICLES.isdisjoint(name[1:])


def is_titled(first: str, second: str) -> bool:
    """Whether two Chinese words are a family name and a title."""
    return (
        first in members("chinese_surnames")
        and chinese.han_rank(first) > PLAIN_SURNAME
        and second not in _IMPERSONAL
        and bool(_TITLE.fullmatch(second))
    )


def find_turned_to(words: Sequence[str], families: Collection[str]) -> Iterator[str]:
    """Yield family names by themselves with the words before them, where these say that somebody is turned to."""
    return (before + word for before, word in pairwise(words) if word in families and _ASKS.match(before))


def familiar(han: str, families: Collection[str], characters: Collection[str]) -> Iterator[str]:
    """Yield how persons are spoken of: by title, as old or young, as one of the family.

    `families` are the first characters of their names, and `characters` all of them.
    """
    for patterns, of_names in ((_BY_FAMILY, families), (_BY_CHARACTER, characters)):
        found = (pair for pattern in patterns for pair in pattern.findall(han))
        yield from (phrase for phrase, name in found if name in of_names)


def _runs(words: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Yield the rows of words that begin with a capital, each with whether it is one word inside a sentence."""
    flags = [*map(_has_capital, words)]
    is_heading = len(words) >= _SHORTEST_HEADING and sum(flags) >= _TITLE_SHARE * len(words)
    for has_capital, row in groupby(enumerate(words), key=lambda entry: flags[entry[0]]):
        if has_capital:
            places, run = zip(*row, strict=True)
            yield len(run) == 1 and places[0] > 0 and not is_heading, [*run]


def _has_capital(word: str) -> bool:
    return word[0].isupper() and _says_something(_bare(word))


def _find_doubled(text: str) -> Iterator[str]:
    """Yield the parts of family names of two, unless both are words."""
    doubled = ([*map(_bare, name.split("-"))] for name in _DOUBLED.findall(text))
    return chain.from_iterable(parts for parts in doubled if not all(map(english.is_known, parts)))


def _initials(run: Iterable[str]) -> str:
    return "".join(word[0] for word in run).lower()


def _is_personal(run: list[str]) -> bool:
    first = _bare(run[0])
    if first in _PERSONAL or first in members("english_given_names"):
        return True
    return len(run) == _FULL_NAME and _bare(run[1]) in members("english_surnames")


def _bare(word: str) -> str:
    return english.one_spelling(word.casefold().removesuffix("'s").strip("'"))


def _says_something(word: str) -> bool:
    return len(word) > 1 and not english.is_function_word(word)
