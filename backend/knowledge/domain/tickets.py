"""Signed tickets: the bases, the user and the expiry of a turn's retrieval, verified without a database."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import not_

from pydantic import AwareDatetime, Field, ValidationError

from backend.foundation.domain.signed_text import read_signed, sign_text
from backend.search.domain.filters import Compound, Filter, Scalar, matches
from shared.errors import Unauthenticated
from shared.models.messages import is_none
from shared.models.values import Value

_PURPOSE = b"ballast knowledge ticket 1\0"


class SearchOptions(Value):
    """Bounds that a caller sets on the results of one search; None leaves the bound to the service.

    `min_score` is compared with the score that results show, between 0 and 1. Only documents whose attributes pass
    `filters` are found, listed and read.
    """

    max_results: int | None = None
    min_score: float | None = None
    # Left out where there is none, because the release before refuses a field that it does not know.
    filters: Filter | None = Field(default=None, exclude_if=is_none)

    @property
    def is_bounded(self) -> bool:
        """Whether a search must rank its results; a base that is returned whole has no ranks."""
        return self.max_results is not None or bool(self.min_score) or self.filters is not None

    def takes(self, attributes: Mapping[str, Scalar]) -> bool:
        """Tell whether a document with these attributes may be found."""
        return self.filters is None or matches(self.filters, attributes)


def strictest(options: Iterable[SearchOptions]) -> SearchOptions:
    """Return the strictest of bounds of search results."""
    given = tuple(options)
    return SearchOptions(
        max_results=min((each.max_results for each in given if each.max_results is not None), default=None),
        min_score=max((each.min_score for each in given if each.min_score is not None), default=None),
        filters=_join([each.filters for each in given if each.filters is not None]),
    )


def _join(filters: Sequence[Filter]) -> Filter | None:
    """Return the filter that passes what all of these pass; None where there is none."""
    if len(filters) > 1:
        return Compound(type="and", filters=list(filters))
    return filters[0] if filters else None


class Ticket(Value):
    """A turn's claim to knowledge bases. It names them; what its user may do there is looked up at each use.

    `search` bounds what each search may bring; `conversation_id` and `turn_id` are for the log. `file_ids` are the
    attached files of the user that the turn may read. `charged_to` is the conversation against whose budget restricted
    searches count, where it is another one: that of the main lane, when several models answer one request.
    """

    user_id: str
    tenant: str
    conversation_id: str
    turn_id: str
    base_ids: tuple[str, ...]
    search: SearchOptions
    # Left out where there are none, because the release before refuses a field that it does not know.
    file_ids: tuple[str, ...] = Field(default=(), exclude_if=not_)
    charged_to: str | None = Field(default=None, exclude_if=is_none)
    expires_at: AwareDatetime

    @property
    def budget_id(self) -> str:
        """The conversation against whose budget restricted searches count."""
        return self.charged_to or self.conversation_id


def sign_ticket(ticket: Ticket, secret: str) -> str:
    """Return the ticket as signed text, which is URL-safe."""
    return sign_text(_PURPOSE, ticket.model_dump_json().encode(), secret)


def verify_ticket(text: str, secret: str, now: datetime) -> Ticket:
    """Return the ticket that `sign_ticket` made into this text.

    Raises:
        Unauthenticated: the ticket is forged, malformed or expired.
    """
    try:
        ticket = Ticket.model_validate_json(read_signed(_PURPOSE, text, secret) or b"")
    except ValidationError:
        raise Unauthenticated("The ticket is not valid.", param="ticket") from None
    if ticket.expires_at <= now:
        raise Unauthenticated("The ticket has expired.", param="ticket")
    return ticket
