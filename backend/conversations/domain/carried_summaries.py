"""Summaries that clients carry in items of the type `compaction`, sealed by this server and opened by it alone."""

from collections.abc import Callable, Sequence
from hashlib import sha256

from pydantic import ValidationError

from backend.conversations.domain.input_items import CompactionItem, InputItem, UserItem
from backend.conversations.domain.responses import ItemBody
from backend.foundation.domain.signed_text import read_signed, sign_text
from backend.knowledge.domain.labels import Labels, decode_labels
from shared.errors import InvalidRequest
from shared.ids import IdPrefix
from shared.models.values import Value

_PURPOSE = b"ballast carried summary 1\0"
_DIGEST_CHARACTERS = 32


class CarriedSummary(Value):
    """A summary, whose it is, and the encoded labels of what it was made from."""

    tenant: str
    user_id: str
    label: str | None
    text: str

    @property
    def labels(self) -> Labels:
        """The bases from which its words may come."""
        return decode_labels(self.label)

    @property
    def item_id(self) -> str:
        """The id of its item; a summary is named by what it says, whatever id a client gives to it."""
        digest = sha256(self.model_dump_json().encode()).hexdigest()
        return f"{IdPrefix.COMPACTION}_{digest[:_DIGEST_CHARACTERS]}"


def build_carrying_item(summary: CarriedSummary, secret: str) -> ItemBody:
    """Return the item that a client carries a summary in."""
    sealed = sign_text(_PURPOSE, summary.model_dump_json().encode(), secret)
    return {"id": summary.item_id, "type": "compaction", "encrypted_content": sealed}


def read_carried(items: Sequence[InputItem], secret: str) -> dict[int, CarriedSummary]:
    """Return the summaries that items of an input carry, by the places of these.

    Raises:
        InvalidRequest: an item carries something else; `param` names it.
    """
    found: dict[int, CarriedSummary] = {}
    for place, item in enumerate(items):
        if isinstance(item, CompactionItem) and item.carries_summary:
            payload = read_signed(_PURPOSE, item.encrypted_content or "", secret)
            try:
                found[place] = CarriedSummary.model_validate_json(payload or b"")
            except ValidationError:
                raise InvalidRequest(
                    "This is no compaction that this server has made; send the items that it stands for.",
                    param=f"input[{place}].encrypted_content",
                ) from None
    return found


def with_messages(
    items: Sequence[InputItem], carried: dict[int, CarriedSummary], text_of: Callable[[CarriedSummary], str]
) -> list[InputItem]:
    """Return items of an input with the messages of the user that carried summaries are to models."""
    return [
        item
        if (summary := carried.get(place)) is None
        else UserItem(role="user", content=text_of(summary), id=summary.item_id)
        for place, item in enumerate(items)
    ]
