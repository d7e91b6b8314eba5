"""Restricted bases of a run: stored by their owner, then read back as the passages that they can show."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx2
import orjson

from tests.leaks.corpus.reading import Attack, Language, Secrets, document_names, document_text, secrets
from tests.leaks.hostile.shown import BaseContent, Passage
from tests.leaks.pair import LeakPair
from tests.leaks.planting import QUIET, PlantedDocument

OWNER = "owner"
_LEAST_TOPIC_WORDS, _TOPIC_WORDS = 12, 30
"""So many that the passage is evidence for them; of those that are shorter than the least only where all are."""

_ENGLISH_WORD = re.compile(r"\b[a-z]{5,}\b")
_CHINESE_PAIR = re.compile(r"([\u4e00-\u9fff]{2})[\u4e00-\u9fff]{0,2}")
"""A pair of characters, and up to two behind it that are left out: so a query holds no run of the passage."""


@dataclass(frozen=True)
class Base:
    """A stored base."""

    id: str
    content: BaseContent
    secrets: tuple[Secrets, ...]
    document_ids: Mapping[str, str]
    owner_texts: tuple[str, ...]

    def topic(self, document: str | None, language: Language, dice: random.Random) -> str:
        """Return words of one passage in their order, for a query that finds something and gives nothing away.

        They are so many that the passage is evidence by meaning as well. It is any passage of the base, planted in or
        not. Passages in another language than the question's are not shown to the secondary model. The oracle takes a
        code name of the corpus for one in every base, so real text that uses the word lends it to no query.
        """
        fitting = [passage for passage in self.content.passages if document in (None, passage.document)]
        fitting = [passage for passage in fitting if passage.language == language] or fitting
        secret = chain.from_iterable(each.planted() for each in (*self.secrets, *secrets()))
        planted = " ".join((*secret, *QUIET)).casefold()
        found = [_unplanted_words(passage.text, planted) for passage in fitting or self.content.passages]
        words = dice.choice([each for each in found if len(each) >= _LEAST_TOPIC_WORDS] or found)
        start = dice.randrange(max(1, len(words) - _TOPIC_WORDS + 1))
        return " ".join(words[start : start + _TOPIC_WORDS])


def _unplanted_words(text: str, planted: str) -> list[str]:
    found = dict.fromkeys(_ENGLISH_WORD.findall(text)) or dict.fromkeys(_CHINESE_PAIR.findall(text))
    return [word for word in found if word not in planted]


async def corpus_base(owner: httpx2.AsyncClient, pair: LeakPair) -> Base:
    """Store the corpus of the leak test as one base."""
    documents = {_stored_name(name): document_text(name) for name in document_names()}
    planted = [planted.model_copy(update={"file": _stored_name(planted.file)}) for planted in secrets()]
    return await stored_base(owner, pair, {"name": "House rules"}, documents, planted)


async def base_of_case(owner: httpx2.AsyncClient, pair: LeakPair, case: Attack) -> Base:
    """Store the document of a case as the case wants it."""
    name = case.document or document_names()[0]
    setup = case.setup
    text = document_text(name)
    if setup.plant_in_chunk:
        sections = text.split("\n\n")
        text = "\n\n".join([*sections[: len(sections) // 2], setup.plant_in_chunk, *sections[len(sections) // 2 :]])
    stored_as = setup.plant_in_file_name or _stored_name(name)
    planted = [each.model_copy(update={"file": stored_as}) for each in secrets() if each.file == name]
    metadata = {
        "name": setup.base_name or "House rules",
        "routing_hint": setup.routing_hint or "",
        "routing_keywords": list(setup.routing_keywords),
    }
    return await stored_base(owner, pair, metadata, {stored_as: text}, planted)


async def planted_base(
    owner: httpx2.AsyncClient, pair: LeakPair, name: str, documents: Sequence[PlantedDocument]
) -> Base:
    """Store documents with what was planted in them."""
    texts = {document.secrets.file: document.text for document in documents}
    return await stored_base(owner, pair, {"name": name}, texts, [document.secrets for document in documents])


async def stored_base(
    owner: httpx2.AsyncClient,
    pair: LeakPair,
    metadata: Mapping[str, Any],
    documents: Mapping[str, str],
    planted: Sequence[Secrets],
) -> Base:
    """Store documents by name under a new base."""
    created = await owner.post("/v1/knowledge_bases", json=dict(metadata))
    assert created.status_code == 201, created.text
    base_id = created.json()["id"]
    for name, text in documents.items():
        put = await owner.put(f"/v1/knowledge_bases/{base_id}/documents/{name}", content=text.encode())
        assert put.status_code == 201, put.text
    passages, document_ids = await _read_back(pair, base_id)
    content = BaseContent(passages, {each.file: each for each in planted})
    openly = (metadata["name"], metadata.get("routing_hint", ""), *metadata.get("routing_keywords", ()))
    return Base(base_id, content, tuple(planted), document_ids, openly)


async def _read_back(pair: LeakPair, base_id: str) -> tuple[tuple[Passage, ...], dict[str, str]]:
    rows = await pair.database.rows(
        f"""
        SELECT chunk.id, document.name, chunk.heading_path, chunk.text, document.id FROM chunk
        JOIN document ON document.edition_id = chunk.edition_id
        WHERE document.knowledge_base_id = '{base_id}' ORDER BY document.name, chunk.ordinal
        """
    )
    passages = tuple(Passage(row[0], row[1], tuple(orjson.loads(row[2])), row[3]) for row in rows)
    return passages, {row[1]: row[4] for row in rows}


def _stored_name(name: str) -> str:
    return name.rpartition("/")[2]
