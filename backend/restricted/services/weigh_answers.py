"""Weigh answers by their meaning: which of their sentences retell one of the source, and which facts they tell."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.embeddings.domain import TextKind, Vector, WritingSystem, find_writing_system
from backend.embeddings.ports import Embedder
from backend.knowledge.domain.tickets import Ticket
from backend.restricted.domain.released_results import fact_digest
from backend.restricted.domain.restricted import ChargedSearch, SealedSearch
from backend.restricted.domain.told_facts import RETOLD, TOLD, split_clauses, split_sentences
from backend.restricted.ports.restricted import RestrictedLedger
from backend.restricted.services.ticketed_knowledge import TicketAccess
from shared.errors import NotFound
from shared.models.knowledge_api import ToldFact, WeighedAnswer
from shared.models.safe_summary import ReleasedSummary, SummaryVersions

PREPARE_SECONDS = 60.0
"""So long after an embedder was away it is asked again for the vectors of general findings."""

MOST_VECTORS = 4_096
"""So many vectors of sentences are remembered: those of some ten searches, 6 MB of a small model."""

_FINDINGS = Path(__file__).with_name("general_findings")
GENERAL_FINDINGS: Final[Mapping[WritingSystem, Sequence[str]]] = {
    system: tuple((_FINDINGS / f"{system}.txt").read_text(encoding="utf-8").splitlines())
    for system in (WritingSystem.LATIN, WritingSystem.HAN)
}
"""What can be said of many sources, from honest answers to documents that nobody is asked about."""

_DIGEST = sha256(repr((GENERAL_FINDINGS, RETOLD, TOLD)).encode()).hexdigest()[:12]
_Rows = NDArray[np.float32]


class Meaning(NamedTuple):
    """What makes vectors, and the version of all on which the weights of answers depend."""

    embedder: Embedder
    version: str


def find_meaning(embedder: Embedder | None, model: str, model_sha256: str) -> Meaning | None:
    """Return what weighs answers; None without an embedder. The digest is that of the model's file, if it is known."""
    return None if embedder is None else Meaning(embedder, f"{model} sha256:{model_sha256 or 'unknown'} {_DIGEST}")


class AnswerWeighing:
    """Compares answers with what their searches have shown; without `meaning`, what measures it, nothing is weighed.

    `most_facts` of a document may be told to a user in 30 days. `secret` is the key of the digests of facts.
    """

    def __init__(
        self, access: TicketAccess, ledger: RestrictedLedger, meaning: Meaning | None, most_facts: int, secret: str
    ) -> None:
        self.most_facts = most_facts
        self._access = access
        self._ledger = ledger
        self._meaning = meaning
        self._secret = secret
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._general: dict[WritingSystem, _Rows] = {}
        self._preparing = asyncio.Lock()

    @property
    def is_on(self) -> bool:
        """Whether answers are weighed."""
        return self._meaning is not None

    def add_version(self, versions: SummaryVersions) -> SummaryVersions:
        """Return versions with that of what weighs answers."""
        version = self._meaning.version if self._meaning is not None else ""
        return versions.model_copy(update={"meaning_version": version})

    def must_weigh(self, released: ReleasedSummary | None) -> bool:
        """Whether this is prose that may leave only with the facts that it tells."""
        return self.is_on and released is not None and not released.findings

    async def prepare(self) -> None:
        """Have the vectors of general findings made, once.

        Raises:
            Unavailable: the embedder is away. Retryable.
        """
        if self._meaning is not None:
            for system in GENERAL_FINDINGS:
                await self._general_of(system, self._meaning.embedder)

    async def weigh(self, ticket_text: str, search_id: str, texts: Sequence[str]) -> WeighedAnswer:
        """Compare the sentences of an answer, and their clauses, with the sentences that its search has shown.

        Raises:
            Unauthenticated: the ticket is forged or expired; that is audited.
            NotFound: this turn has no such search.
            Unavailable: the embedder is away. Retryable.
            ModelRequestRejected: the embedder refuses the sentences.
        """
        ticket = await self._access.verify(ticket_text)
        await find_charged(self._ledger, ticket, search_id)
        said = list(dict.fromkeys(chain.from_iterable(map(split_sentences, texts))))
        shown = await self._ledger.read_shown(search_id) if self._meaning is not None else ()
        source = [(each.document_id, sentence) for each in shown for sentence in split_sentences(each.text)]
        if self._meaning is None or not said or not source:
            return WeighedAnswer(retold=(), facts=())
        pieces = [(place, piece) for place, sentence in enumerate(said) for piece in split_clauses(sentence)]
        excess = await self.measure([piece for _, piece in pieces], [sentence for _, sentence in source])
        retold = dict.fromkeys(said[pieces[row][0]] for row in np.flatnonzero(excess.max(axis=1) >= RETOLD))
        facts = dict.fromkeys(self._fact(*source[place]) for place in np.flatnonzero(excess.max(axis=0) >= TOLD))
        return WeighedAnswer(retold=tuple(retold), facts=tuple(facts))

    async def measure(self, said: Sequence[str], source: Sequence[str]) -> _Rows:
        """Return by how much each text that is said is nearer to each of the source than to any general finding."""
        assert self._meaning is not None
        embedder = self._meaning.embedder
        rows = await self._vectors_of(said, embedder)
        systems = [system for system in map(find_writing_system, said) if system in GENERAL_FINDINGS]
        general = [await self._general_of(system, embedder) for system in dict.fromkeys(systems) or GENERAL_FINDINGS]
        usual = (rows @ np.concatenate(general).T).max(axis=1, keepdims=True)
        return rows @ (await self._vectors_of(source, embedder)).T - usual

    def _fact(self, document_id: str, sentence: str) -> ToldFact:
        return ToldFact(document_id=document_id, digest=fact_digest(self._secret, document_id, sentence))

    async def _general_of(self, system: WritingSystem, embedder: Embedder) -> _Rows:
        async with self._preparing:
            if system not in self._general:
                self._general[system] = _stack(await embedder.embed(GENERAL_FINDINGS[system], TextKind.PASSAGE))
            return self._general[system]

    async def _vectors_of(self, sentences: Sequence[str], embedder: Embedder) -> _Rows:
        """Return the vectors of sentences, one a row; those that are remembered are not asked for again."""
        # What is remembered is read before the wait, during which other answers may displace it.
        known = {sentence: self._vectors[sentence] for sentence in sentences if sentence in self._vectors}
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in known]
        if new:
            known.update(zip(new, await embedder.embed(new, TextKind.PASSAGE), strict=True))
        for sentence, vector in known.items():
            self._vectors[sentence] = vector
            self._vectors.move_to_end(sentence)
        while len(self._vectors) > MOST_VECTORS:
            self._vectors.popitem(last=False)
        return _stack([known[sentence] for sentence in sentences])


def _stack(vectors: Sequence[Vector]) -> _Rows:
    return np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(vectors), -1)


async def find_charged(ledger: RestrictedLedger, ticket: Ticket, search_id: str) -> ChargedSearch:
    """Return a search that was charged for the turn of a ticket.

    Raises:
        NotFound: this turn has no such search.
    """
    charged = await ledger.find_search(search_id)
    if charged is None or _turn_of(charged.search) != _turn_of(ticket):
        raise NotFound("There is no such search in this turn.", param="search_id")
    return charged


def _turn_of(claim: Ticket | SealedSearch) -> tuple[str, str, str, str]:
    conversation_id = claim.budget_id if isinstance(claim, Ticket) else claim.conversation_id
    return (claim.tenant, claim.user_id, conversation_id, claim.turn_id)
