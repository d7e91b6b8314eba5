"""Weigh answers by their meaning: which of their sentences retell one of the source, and which facts they tell."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.embeddings.domain import TextKind, Vector
from backend.embeddings.ports import Embedder
from backend.knowledge.domain.tickets import Ticket
from backend.restricted.domain.released_results import fact_digest
from backend.restricted.domain.restricted import ChargedSearch, SealedSearch
from backend.restricted.domain.told_facts import KNOWN_NEARNESS, TOLD_BELOW, Nearness, split_sentences
from backend.restricted.ports.restricted import RestrictedLedger
from backend.restricted.services.ticketed_knowledge import TicketAccess
from shared.errors import NotFound
from shared.models.knowledge_api import ToldFact, WeighedAnswer
from shared.models.safe_summary import ReleasedSummary, SummaryVersions

MOST_VECTORS = 4_096
"""So many vectors of sentences are remembered: those of some ten searches, 6 MB of a small model."""


class Meaning(NamedTuple):
    """What makes vectors, how near they are when they say the same, and the version of both."""

    embedder: Embedder
    nearness: Nearness
    version: str


def find_meaning(embedder: Embedder | None, model: str, sha256: str, nearness: float | None) -> Meaning | None:
    """Return what weighs answers; None without an embedder, and where nobody has said how near is near for its model.

    `sha256` is that of the model's file, where the operator has told it.
    """
    bounds = Nearness(nearness, nearness - TOLD_BELOW) if nearness is not None else KNOWN_NEARNESS.get(model)
    if embedder is None or bounds is None:
        return None
    return Meaning(embedder, bounds, f"{model} sha256:{sha256 or 'unknown'} {bounds.retold:g} {bounds.told:g}")


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

    async def weigh(self, ticket_text: str, search_id: str, texts: Sequence[str]) -> WeighedAnswer:
        """Compare the sentences of an answer with those that its search has shown.

        Raises:
            Unauthenticated: the ticket is forged or expired; that is audited.
            NotFound: this turn has no such search.
            Unavailable: the embedder is away. Retryable.
            ModelRequestRejected: the embedder refuses the sentences.
        """
        ticket = await self._access.verify(ticket_text)
        await find_charged(self._ledger, ticket, search_id)
        if self._meaning is None:
            return WeighedAnswer(retold=(), facts=())
        embedder, nearness, _ = self._meaning
        said = list(dict.fromkeys(chain.from_iterable(map(split_sentences, texts))))
        shown = await self._ledger.read_shown(search_id)
        source = [(each.document_id, sentence) for each in shown for sentence in split_sentences(each.text)]
        if not said or not source:
            return WeighedAnswer(retold=(), facts=())
        answer = await self._vectors_of(said, embedder)
        scores = answer @ (await self._vectors_of([sentence for _, sentence in source], embedder)).T
        retold = np.flatnonzero(scores.max(axis=1) >= nearness.retold)
        told = np.flatnonzero(scores.max(axis=0) >= nearness.told)
        facts = dict.fromkeys(self._fact(*source[place]) for place in told)
        return WeighedAnswer(retold=tuple(said[place] for place in retold), facts=tuple(facts))

    def _fact(self, document_id: str, sentence: str) -> ToldFact:
        return ToldFact(document_id=document_id, digest=fact_digest(self._secret, document_id, sentence))

    async def _vectors_of(self, sentences: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
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
        rows = b"".join(known[sentence] for sentence in sentences)
        return np.frombuffer(rows, dtype=np.float32).reshape(len(sentences), -1)


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
