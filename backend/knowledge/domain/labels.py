"""Labels: the knowledge bases from which words may come, and the access that a reader of them needs.

A turn's label names the bases whose words its messages may hold: those in its scope, and those of the earlier turns
that its model was shown. Where it was shown released words of a turn of another conversation, the label names that
turn, too: who may not read that turn any more may not read this one.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shared.ids import IdPrefix
from shared.models.execution import AccessMode

TURN_ID_START = f"{IdPrefix.RESPONSE}_"
_RELEASED_MARK = ":released"


class Label(NamedTuple):
    """A base, and the access mode that its words need: FULL for its text, RESTRICTED for released summaries.

    In the place of the base a turn may stand whose released words were taken into another conversation.
    """

    base_id: str
    mode: AccessMode


Labels = tuple[Label, ...]
Access = Mapping[str, AccessMode]
"""The mode that a reader has today in each base of which they are a member."""


def join_labels(labels: Iterable[Label]) -> Labels:
    """Return one label for each base, FULL if any of its labels is, ordered by id."""
    modes: dict[str, AccessMode] = {}
    for label in labels:
        if modes.get(label.base_id) is not AccessMode.FULL:
            modes[label.base_id] = label.mode
    return tuple(Label(base_id, modes[base_id]) for base_id in sorted(modes))


def name_turn(turn_id: str, labels: Labels) -> Labels:
    """Return the labels of what is taken out of a turn: its own, and, where released words are in it, its name."""
    is_released = any(label.mode is AccessMode.RESTRICTED for label in labels)
    return join_labels([*labels, Label(turn_id, AccessMode.RESTRICTED)]) if is_released else labels


def without_turns(labels: Iterable[Label]) -> Labels:
    """Return the labels that name bases, or what has been deleted."""
    return tuple(label for label in labels if not label.base_id.startswith(TURN_ID_START))


def may_read(access: Access, labels: Iterable[Label]) -> bool:
    """Return whether a reader may see words with these labels, which takes access to each of their bases."""
    return all(access.get(label.base_id) in (label.mode, AccessMode.FULL) for label in labels)


def encode_labels(labels: Labels) -> str | None:
    """Write labels as one text: ids with a space between them, a mark behind those of released words."""
    return (
        " ".join(base_id if mode is AccessMode.FULL else base_id + _RELEASED_MARK for base_id, mode in labels) or None
    )


def decode_labels(text: str | None) -> Labels:
    """Read what `encode_labels` wrote."""
    return tuple(map(_decode, text.split(" "))) if text else ()


def _decode(text: str) -> Label:
    base_id = text.removesuffix(_RELEASED_MARK)
    return Label(base_id, AccessMode.FULL if base_id == text else AccessMode.RESTRICTED)
