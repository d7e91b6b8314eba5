"""Weigh answers by their meaning: which of their sentences retell one of the source, and which facts they tell."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from backend.knowledge.domain.tickets import Ticket
from backend.restricted.domain.released_results import fact_digest
from backend.restricted.domain.restricted import ChargedSearch, SealedSearch
from backend.restricted.domain.told_facts import RETOLD, TOLD, split_clauses, split_sentences
from backend.restricted.ports.restricted import RestrictedLedger
from backend.restricted.services.ticketed_knowledge import TicketAccess
from shared.errors import NotFound
from shared.models.knowledge_api import ToldFact, WeighedAnswer
from shared.models.safe_summary import ReleasedSummary, SummaryVersions

if TYPE_CHECKING:
    from backend.restricted.services.meaning_scale import MeaningScale

PREPARE_SECONDS = 60.0
"""So long after an embedder was away it is asked again for the vectors of general findings."""


class AnswerWeighing:
    """Compares answers with what their searches have shown; without a scale nothing is weighed.

    `most_facts` of a document may be told to a user in 30 days. `secret` is the key of the digests of facts.
    """

    def __init__(
        self, access: TicketAccess, ledger: RestrictedLedger, scale: "MeaningScale | None", most_facts: int, secret: str
    ) -> None:
        self.most_facts = most_facts
        self._access = access
        self._ledger = ledger
        self._scale = scale
        self._secret = secret

    @property
    def is_on(self) -> bool:
        """Whether answers are weighed."""
        return self._scale is not None

    def add_version(self, versions: SummaryVersions) -> SummaryVersions:
        """Return versions with that of what weighs answers."""
        return versions.model_copy(update={"meaning_version": self._scale.version if self._scale else ""})

    def must_weigh(self, released: ReleasedSummary | None) -> bool:
        """Whether this is prose that may leave only with the facts that it tells."""
        return self.is_on and released is not None and not released.findings

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
        if self._scale is None:
            return WeighedAnswer(retold=(), facts=())
        said = list(dict.fromkeys(chain.from_iterable(map(split_sentences, texts))))
        shown = await self._ledger.read_shown(search_id)
        source = [(each.document_id, sentence) for each in shown for sentence in split_sentences(each.text)]
        if not said or not source:
            return WeighedAnswer(retold=(), facts=())
        pieces = [(sentence, piece) for sentence in said for piece in split_clauses(sentence)]
        excess = await self._scale.measure([piece for _, piece in pieces], [sentence for _, sentence in source])
        most, nearest = excess.max(axis=1), excess.argmax(axis=1)
        retelling: list[int] = (most >= RETOLD).nonzero()[0].tolist()
        retold = dict.fromkeys(pieces[place][0] for place in retelling)
        told: list[int] = nearest[most >= TOLD].tolist()
        facts = dict.fromkeys(self._fact(*source[place]) for place in told)
        return WeighedAnswer(retold=tuple(retold), facts=tuple(facts))

    def _fact(self, document_id: str, sentence: str) -> ToldFact:
        return ToldFact(document_id=document_id, digest=fact_digest(self._secret, document_id, sentence))


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
