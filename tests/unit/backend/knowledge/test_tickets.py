"""Signed tickets."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket, verify_ticket
from shared.errors import Unauthenticated

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
TICKET = Ticket(
    user_id="ann",
    tenant="acme",
    conversation_id="conv_1",
    turn_id="resp_1",
    base_ids=("kb_b", "kb_a"),
    search=SearchOptions(max_results=3, min_score=0.25),
    expires_at=NOW + timedelta(minutes=10),
)
SIGNED = sign_ticket(TICKET, "secret")


def test_a_ticket_comes_back_as_it_was_signed() -> None:
    assert verify_ticket(SIGNED, "secret", NOW) == TICKET
    assert sign_ticket(TICKET, "secret") == SIGNED
    assert SIGNED.isascii()
    assert not set(SIGNED) & set(" \n+/=")


def test_it_expires() -> None:
    verify_ticket(SIGNED, "secret", TICKET.expires_at - timedelta(microseconds=1))
    with pytest.raises(Unauthenticated):
        verify_ticket(SIGNED, "secret", TICKET.expires_at)


def test_another_secret_signs_something_else() -> None:
    with pytest.raises(Unauthenticated):
        verify_ticket(SIGNED, "other", NOW)


@pytest.mark.parametrize("place", range(0, len(SIGNED), 7))
def test_a_changed_character_is_a_forgery(place: int) -> None:
    other = "A" if SIGNED[place] != "A" else "B"
    with pytest.raises(Unauthenticated):
        verify_ticket(SIGNED[:place] + other + SIGNED[place + 1 :], "secret", NOW)


@given(st.text())
def test_any_other_text_is_no_ticket(text: str) -> None:
    with pytest.raises(Unauthenticated):
        verify_ticket(text, "secret", NOW)


def test_a_signature_from_another_ticket_does_not_fit() -> None:
    other = sign_ticket(TICKET.model_copy(update={"base_ids": ("kb_secret",)}), "secret")
    with pytest.raises(Unauthenticated):
        verify_ticket(f"{other.split('.')[0]}.{SIGNED.split('.')[1]}", "secret", NOW)
