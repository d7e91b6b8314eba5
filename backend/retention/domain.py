"""Terms of retention, kinds of deleted things, and the person whose data is deleted or exported."""

from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple


class Kept(StrEnum):
    """The kinds of what is kept for a time."""

    CONVERSATIONS = "conversations"
    RESPONSES = "responses"
    FILES = "files"
    AUDIT_RECORDS = "audit_records"


class RetentionTerms(NamedTuple):
    """For how long things are kept after they were last touched, and audit records after they were written.

    None keeps them for ever.
    """

    untouched: timedelta | None
    audit: timedelta | None

    def of(self, kind: Kept) -> timedelta | None:
        """Return for how long things of a kind are kept."""
        return self.audit if kind is Kept.AUDIT_RECORDS else self.untouched


class DuePage(NamedTuple):
    """What is due among some rows in the order of their ids; `last` is the last of them, None where there was none."""

    due: tuple[str, ...]
    last: str | None


class Person(NamedTuple):
    """A user of a tenant."""

    tenant: str
    user_id: str


class SoleOwnership(NamedTuple):
    """Ids of bases and names of agents that have no other owner."""

    base_ids: tuple[str, ...]
    agent_names: tuple[str, ...]


class PersonalRows(StrEnum):
    """What is deleted row by row where it is a person's."""

    API_KEYS = "api_keys"
    WAITING_TURNS = "waiting_turns"
    RESPONSES = "responses"
    FILES = "files"
    RESTRICTED_SEARCHES = "restricted_searches"
