"""Answers whose citations a person has marked, read from `cited_answers.txt`."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("cited_answers.txt")

_CASE = re.compile(r"^%% (?P<name>[^|\n]+?)(?: \| (?P<documents>[^\n]+))?\n(?P<body>.*?)(?=\n%% |\n*\Z)", re.M | re.S)
_MARK = re.compile(r"⟦(?P<written>.*?)(?:→(?P<numbers>[\d,]+))?⟧", re.S)


@dataclass(frozen=True)
class MarkedAnswer:
    """An answer, the numbers of the documents that exist, and what a client shall get of it.

    `citations` are the numbers with the positions of their markers in `text`.
    """

    name: str
    documents: frozenset[int]
    answer: str
    text: str
    citations: tuple[tuple[int, int], ...]


def marked_answers() -> Iterator[MarkedAnswer]:
    """Yield all answers of the file."""
    for case in _CASE.finditer(FILE.read_text(encoding="utf-8")):
        yield _read(case["name"], _numbers(case["documents"]), case["body"])


def _numbers(documents: str | None) -> frozenset[int]:
    if documents is None:
        return frozenset(range(1, 10))
    found: set[int] = set()
    for one in re.findall(r"\d+(?:-\d+)?", documents):
        first, _, last = one.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _read(name: str, documents: frozenset[int], body: str) -> MarkedAnswer:
    answer, text, citations, end = "", "", list[tuple[int, int]](), 0
    for mark in _MARK.finditer(body):
        before = body[end : mark.start()]
        answer, text, end = answer + before + mark["written"], text + before, mark.end()
        for number in re.findall(r"\d+", mark["numbers"] or unicodedata.normalize("NFKC", mark["written"])):
            citations.append((int(number), len(text)))
            text += f"[{number}]"
    return MarkedAnswer(name, documents, answer + body[end:], text + body[end:], tuple(citations))
