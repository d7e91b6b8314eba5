"""Validation of long lists of items in short steps."""

from typing import TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from backend.conversations.domain.input_items import MAX_ITEMS, InputItem
from backend.conversations.domain.passed_over import PassedOver
from backend.foundation.domain.json_objects import STEP_BYTES, JsonText, Pause, Steps, decode_cooperatively
from shared.models.invalid_fields import refusal_of
from shared.models.values import JsonValue

STEP_WEIGHT = 100
"""Items and parts of items that are validated in one step, which takes about 2 ms."""

Body = TypeVar("Body", bound=BaseModel)
Element = TypeVar("Element")
INPUT_ITEM: TypeAdapter[InputItem] = TypeAdapter(InputItem)


def body_cooperatively(
    kind: type[Body], text: JsonText, field: str, element: TypeAdapter[Element], passed_over: PassedOver | None = None
) -> Steps[Body]:
    """Read a body whose field `field` may be a list of items, or of other elements that hold lists of parts.

    What is not known in it is named to `passed_over`; without that it is refused.

    Raises:
        InvalidRequest: `param` names the exact field, such as `input[2].content[0].image_url`.
        UnsupportedValue: OpenAI's API has this value, and this server does not support it.
    """
    given = yield from decode_cooperatively(text)
    items = found if isinstance(found := given.get(field), list) else list[JsonValue]()
    is_list = 1 < len(items) <= MAX_ITEMS
    if len(text.raw) > STEP_BYTES:
        yield Pause.BEFORE_LONG  # an image is checked as a whole
    try:
        shown = {**given, field: items[:1]} if is_list else given
        body = kind.model_validate(shown, context=passed_over)
        _name(passed_over, shown)
    except ValidationError as error:
        raise refusal_of(error, given=given, tells_unsupported=True) from None
    if not is_list:
        return body
    first = cast(list[Element], getattr(body, field))
    rest = yield from _elements_behind_first(items, field, element, passed_over)
    return body.model_copy(update={field: [*first, *rest]})


def item_of(body: JsonValue) -> InputItem:
    """Read a stored item as one that a client sends."""
    return INPUT_ITEM.validate_python(body)


def _name(passed_over: PassedOver | None, given: JsonValue, root: str = "") -> None:
    if passed_over is not None:
        passed_over.name(given, root)


def _elements_behind_first(
    items: list[JsonValue], field: str, element: TypeAdapter[Element], passed_over: PassedOver | None
) -> Steps[list[Element]]:
    read: list[Element] = []
    weight = _weight(items[0])
    for place, item in enumerate(items[1:], start=1):
        own = _weight(item)
        if weight + own > STEP_WEIGHT:
            weight = 0
            yield
        weight += own
        try:
            read.append(element.validate_python(item, context=passed_over))
            _name(passed_over, item, f"{field}[{place}]")
        except ValidationError as error:
            raise refusal_of(error, f"{field}[{place}]", item, tells_unsupported=True) from None
    return read


def _weight(item: JsonValue) -> int:
    members = cast("dict[str, object]", item).values() if isinstance(item, dict) else ()
    return 1 + sum(len(cast("list[object]", member)) for member in members if isinstance(member, list))
