"""Check `schema`: the reply is one strict JSON object of the agreed form, and a refusal holds nothing else."""

import json
from dataclasses import dataclass
from typing import TypeGuard, cast

from chat_shell.sealed.codes import AnswerReason, Confidence, PolicyRefusal
from chat_shell.sealed.verdicts import Refused
from shared.models.safe_summary import MAX_LIST_ITEM_CHARACTERS, MAX_LIST_ITEMS, MAX_SUMMARY_CHARACTERS, Decision

MAX_REPLY_BYTES = 8_192
"""The fail-closed table's bound on a reply; the largest in the agreed form has some 6,300 bytes, all of it Chinese."""

_LISTS = ("observations", "risks", "recommended_actions")
_KEYS = frozenset({"decision", "reason", "summary", "confidence", *_LISTS})


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer in the agreed form that no other check has seen yet."""

    reason: AnswerReason
    summary: str
    observations: tuple[str, ...]
    risks: tuple[str, ...]
    recommended_actions: tuple[str, ...]
    confidence: Confidence

    @property
    def lists(self) -> tuple[tuple[str, ...], ...]:
        """Return its lists in the order of the form."""
        return self.observations, self.risks, self.recommended_actions

    @property
    def fields(self) -> tuple[str, ...]:
        """Return its texts in the order of the form."""
        return self.summary, *(item for items in self.lists for item in items)


def read_object(reply: bytes) -> dict[str, object] | None:
    """Read one strict JSON object of at most the allowed size; None for anything else."""
    if len(reply) > MAX_REPLY_BYTES:
        return None
    try:
        form: object = json.loads(
            reply.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        return None
    return form if _is_object(form) else None


def parse(reply: bytes) -> Candidate | Refused | None:
    """Read a reply; None for anything but the agreed form."""
    form = read_object(reply)
    if form is None or form.keys() != _KEYS or form["confidence"] not in list(Confidence):
        return None
    return _read_refused(form) if form["decision"] == Decision.REFUSE else _candidate(form)


def _read_refused(form: dict[str, object]) -> Refused | None:
    if form["reason"] not in list(PolicyRefusal) or form["summary"] != "" or any(form[key] != [] for key in _LISTS):
        return None
    return Refused(PolicyRefusal(str(form["reason"])))


def _candidate(form: dict[str, object]) -> Candidate | None:
    summary, lists = form["summary"], [tuple(items) for key in _LISTS if _is_list(items := form[key])]
    if (
        form["decision"] != Decision.ANSWER
        or form["reason"] not in list(AnswerReason)
        or not _is_text(summary, MAX_SUMMARY_CHARACTERS)
        or len(lists) != len(_LISTS)
    ):
        return None
    observations, risks, actions = lists
    reason, confidence = AnswerReason(str(form["reason"])), Confidence(str(form["confidence"]))
    return Candidate(reason, summary, observations, risks, actions, confidence)


def _is_object(form: object) -> TypeGuard[dict[str, object]]:
    return isinstance(form, dict)


def _is_list(items: object) -> TypeGuard[list[str]]:
    return (
        isinstance(items, list)
        and len(cast("list[object]", items)) <= MAX_LIST_ITEMS
        and all(_is_text(item, MAX_LIST_ITEM_CHARACTERS) for item in cast("list[object]", items))
    )


def _is_text(text: object, most: int) -> TypeGuard[str]:
    return isinstance(text, str) and bool(text.strip()) and len(text) <= most


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    form = dict(pairs)
    if len(form) != len(pairs):
        raise ValueError("a key stands twice")
    return form


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
