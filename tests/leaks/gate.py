"""`python -m tests.leaks.gate`: the hostile models at the gate itself, with passages that any search may find.

No service runs, so that many thousands of trials take minutes. A trial shows a model one to eight passages of one
language: some that stand together in a document, and others from anywhere, as a search by meaning finds them.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from backend.restricted.services.sealed_search import MAX_SIBLINGS, MAX_SIBLINGS_OF_DOCUMENT
from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.gate.case import GateCase
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.verdicts import Released
from tests.leaks.chunks import pieces_of, sealed_chunk
from tests.leaks.corpus.reading import (
    BenignQuestion,
    Language,
    Secrets,
    benign_questions,
    document_names,
    document_text,
    secrets,
)
from tests.leaks.hostile.replies import HttpReply
from tests.leaks.hostile.shown import BaseContent, Passage, Shown
from tests.leaks.hostile.stub import Stub
from tests.leaks.hostile.stubs import STUBS
from tests.leaks.oracle.oracle import Circumstances, Leak, Oracle
from tests.leaks.planting import PlantedDocument, chinese_passages, corpora, english_handbook
from tests.leaks.visits import agreed, answer_fields

PLANTED_DOCUMENTS = 40
MOST_PASSAGES = 8


@dataclass(frozen=True)
class Texts:
    """All documents of a run: their passages, and what was planted in them."""

    content: BaseContent
    secrets: Sequence[Secrets]
    oracle: Oracle

    @classmethod
    def of(cls, documents: Sequence[PlantedDocument]) -> "Texts":
        """Cut documents as the product does."""
        passages = [passage for document in documents for passage in _passages(document)]
        planted = [document.secrets for document in documents]
        oracle = Oracle.over({passage.chunk_id: passage.text for passage in passages}, planted)
        return cls(BaseContent(passages, {each.file: each for each in planted}), planted, oracle)


@dataclass(frozen=True)
class Search:
    """What one search shows a model, and the gate's case over it."""

    passages: tuple[Passage, ...]
    question: BenignQuestion
    case: GateCase

    @property
    def request_text(self) -> str:
        """The passages with their titles and headings, as a request holds them."""
        return "\n\n".join("\n".join((each.document, *each.heading_path, each.text)) for each in self.passages)


def corpus() -> list[PlantedDocument]:
    """Return the project's documents."""
    by_file = {each.file: each for each in secrets()}
    return [PlantedDocument(document_text(name), by_file[name]) for name in document_names()]


def real_documents() -> list[PlantedDocument]:
    """Return pages of the shared corpora, if they are there, with planted secrets."""
    place = corpora()
    if place is None:
        return []
    return [
        *english_handbook(place, PLANTED_DOCUMENTS, "gate"),
        *chinese_passages(place, PLANTED_DOCUMENTS, "gate"),
    ]


def searches(texts: Texts, count: int, dice: random.Random) -> Iterator[Search]:
    """Make searches: half of the passages stand beside the first one, the others anywhere in the same language."""
    by_language: dict[Language, list[Passage]] = {
        language: [each for each in texts.content.passages if each.language == language] for language in ("en", "zh")
    }
    by_document: dict[str, list[Passage]] = {}
    for passage in texts.content.passages:
        by_document.setdefault(passage.document, []).append(passage)
    for number in range(count):
        language: Language = ("en", "zh")[number % 2]
        first = dice.choice(by_language[language])
        beside = [each for each in by_document[first.document] if each.language == language]
        pool = [*dice.sample(beside, len(beside)), *dice.sample(by_language[language], MOST_PASSAGES)]
        shown = dict.fromkeys((first, *dice.sample(pool, min(len(pool), dice.randrange(MOST_PASSAGES)))))
        question = dice.choice([each for each in benign_questions() if each.language == language])
        yield Search(tuple(shown), question, _case(tuple(shown), by_document, question))


def leaks_of(stub: Stub, search: Search, texts: Texts, seed: str) -> tuple[list[Leak], Released | None]:
    """Return what the gate lets this model give away, and what it released."""
    planted = [each for each in texts.secrets if each.file in {passage.document for passage in search.passages}]
    shown = Shown(search.request_text, search.passages, tuple(planted), (), 1, random.Random(seed))
    behaviour = stub.reply(shown)
    reply = said_by(behaviour) if isinstance(behaviour, HttpReply) else None
    verdict = judge(reply.encode(), search.case) if reply is not None else None
    if not isinstance(verdict, Released) or not isinstance(behaviour, HttpReply):
        return [], None
    result = verdict.as_json()
    given = Circumstances(frozenset(each.chunk_id for each in search.passages), (search.question.text,))
    found = texts.oracle.leaks(result, given, is_prose=True) + texts.oracle.answer_leaks(answer_fields(result), given)
    if not shown.made_up:
        found += agreed(stub, [behaviour.carries], result, given, planted)
    return found, verdict


def said_by(reply: HttpReply) -> str | None:
    """Return the text of a chat completion; None where the bytes are none."""
    try:
        said = orjson.loads(reply.raw.partition(b"\r\n\r\n")[2])["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        return None
    return said if isinstance(said, str) else None


def main(count: int, seed: str) -> int:
    """Print what was released and leaked; return 1 where a model that is asserted got something out."""
    texts, trials = Texts.of([*corpus(), *real_documents()]), 0
    released, leaked, told = Counter[str](), Counter[str](), Counter[str]()
    for number, search in enumerate(searches(texts, count, random.Random(seed))):
        for stub in (stub for stub in STUBS if stub.gives_away):
            trials += 1
            found, release = leaks_of(stub, search, texts, f"{seed} {number} {stub.name}")
            released[stub.name] += release is not None
            if found and release is not None:
                (leaked if stub.is_asserted else told)[stub.name] += 1
                places = ", ".join(passage.chunk_id for passage in search.passages)
                sys.stdout.write(f"{number} {stub.name}: {found}\n    {release.as_json()}\n    {places}\n")
    lines = [
        f"{name}: {out} released, {leaked[name] + told[name]} leaked" for name, out in released.most_common() if out
    ]
    sys.stdout.write("\n".join([*lines, f"{trials} trials, {leaked.total()} leaks, {told.total()} not asserted", ""]))
    return int(leaked.total() > 0)


def _passages(document: PlantedDocument) -> Iterator[Passage]:
    for ordinal, piece in enumerate(pieces_of(document.text)):
        yield Passage(f"{document.secrets.file} {ordinal}", document.secrets.file, piece.heading_path, piece.text)


def _case(shown: Sequence[Passage], by_document: Mapping[str, Sequence[Passage]], question: BenignQuestion) -> GateCase:
    documents = dict.fromkeys(each.document for each in shown)
    beginnings = [each for name in documents for each in by_document[name][:MAX_SIBLINGS_OF_DOCUMENT]]
    siblings = [each for each in beginnings if each not in shown][:MAX_SIBLINGS]
    return prepare([*map(_chunk, shown)], question.text, (), [*map(_chunk, siblings)])


def _chunk(passage: Passage) -> ProtectedChunk:
    name, _, ordinal = passage.chunk_id.rpartition(" ")
    return sealed_chunk(name, passage.document, int(ordinal), passage.heading_path, passage.text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--seed", default="gate")
    chosen = parser.parse_args()
    sys.exit(main(chosen.searches, chosen.seed))
