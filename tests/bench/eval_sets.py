"""What `make eval-retrieval` searches, and the questions that it asks: sets with names, each of one base.

The corpora are no part of the project: they are read from `../shared/corpora` or `BALLAST_CORPORA`. The translated
questions and the passages of `encyclopaedia.jsonl`, each in two languages with a question in both, are the project's
own, and were written before anything was measured with them.
"""

import gzip
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from backend.knowledge.services.knowledge_documents import NewDocument

ROOT = Path(__file__).parents[2]
CORPORA = Path(os.environ.get("BALLAST_CORPORA") or ROOT.parent / "shared" / "corpora")
PASSAGES, HANDBOOK = CORPORA / "cmrc-zh.jsonl.gz", CORPORA / "handbook-en.jsonl.gz"
TRANSLATED = Path(__file__).with_name("translated_questions.jsonl")
ENCYCLOPAEDIA = Path(__file__).with_name("encyclopaedia.jsonl")

SAMPLED_QUESTIONS = 400
CHOSEN_ON, HELD_OUT = "Chinese, for the choices", "Chinese, held out"
ENGLISH = "English, pages of the handbook"
TO_ENGLISH, TO_CHINESE = "Chinese question, English page", "English question, Chinese passage"
_KINDS = {"en-en": ENGLISH, "zh-en": TO_ENGLISH, "en-zh": TO_CHINESE}

LANGUAGES = ("en", "zh")
_NAMES = {"en": "English", "zh": "Chinese"}


class Question(NamedTuple):
    """A question, and the name of the document that answers it."""

    text: str
    document_name: str


class QuestionSet(NamedTuple):
    """Questions of one kind; `base` is the key of the base of which they are asked."""

    name: str
    base: str
    questions: Sequence[Question]


class Material(NamedTuple):
    """All documents by the key of their base, and what is asked of them."""

    documents: Mapping[str, Sequence[NewDocument]]
    sets: Sequence[QuestionSet]


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a gzipped file of JSON lines."""
    with gzip.open(path, "rb") as lines:
        yield from (orjson.loads(line) for line in lines)


def read_corpora() -> tuple[list[NewDocument], list[Question]]:
    """Return all documents, passages first, and all questions."""
    documents: list[NewDocument] = []
    questions: list[Question] = []
    for number, row in enumerate(read_lines(PASSAGES)):
        name = f"passage-{number:04}.txt"
        documents.append(NewDocument(name, "text/plain", row["context"].encode()))
        questions += [Question(question["q"], name) for question in row["questions"]]
    for number, row in enumerate(read_lines(HANDBOOK)):
        if row["text"].strip():
            documents.append(NewDocument(f"page-{number:04}.md", "text/markdown", row["text"].encode()))
    return documents, questions


def corpora_sets(questions: Sequence[Question]) -> list[QuestionSet]:
    """Return a sample of the questions of the corpora, half of it held out, and the translated questions."""
    dice = random.Random("eval-meaning")
    some = dice.sample(list(questions), min(SAMPLED_QUESTIONS, len(questions)))
    sets = {CHOSEN_ON: some[0::2], HELD_OUT: some[1::2]}
    for line in _lines_of(TRANSLATED):
        sets.setdefault(_KINDS[line["kind"]], []).append(Question(line["question"], line["document"]))
    return [QuestionSet(name, "corpora", asked) for name, asked in sets.items()]


def own_set_name(language: str, base: str) -> str:
    """Return the name of the set of the project's own passages with questions of a language, asked of a base."""
    if base == "both":
        return f"own passages, both languages: {_NAMES[language]}"
    if base == language:
        return f"own passages, {_NAMES[language]}"
    return f"own passages, {_NAMES[language]} question to {_NAMES[base]}"


def read_own() -> Material:
    """Return the project's own passages as a base of each language and one of both, and what is asked of these."""
    lines = list(_lines_of(ENCYCLOPAEDIA))
    texts = {
        language: [
            NewDocument(f"{language}-{place:03}.txt", "text/plain", line[language].encode())
            for place, line in enumerate(lines)
        ]
        for language in LANGUAGES
    }
    sets: list[QuestionSet] = []
    for base in ("both", *LANGUAGES):
        for language in LANGUAGES:
            answering = language if base == "both" else base
            asked = [
                Question(line[f"question_{language}"], f"{answering}-{place:03}.txt")
                for place, line in enumerate(lines)
            ]
            sets.append(QuestionSet(own_set_name(language, base), base, asked))
    return Material({**texts, "both": [one for some in texts.values() for one in some]}, sets)


def _lines_of(path: Path) -> Iterator[dict[str, Any]]:
    return (orjson.loads(line) for line in path.read_bytes().splitlines())
