"""Bodies with lists of items: in which steps they are validated."""

import orjson
import pytest
from pydantic import BaseModel, TypeAdapter, field_validator

from backend.conversations.domain.item_steps import STEP_WEIGHT, body_cooperatively
from backend.foundation.domain.json_objects import STEP_BYTES, Pause, Steps, result_of, scan_json

validated: list[str] = []


class Element(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def _note(cls, text: str) -> str:
        validated.append(text[:20])
        return text


class Body(BaseModel):
    elements: list[Element]


def reading(texts: list[str]) -> Steps[Body]:
    validated.clear()
    raw = orjson.dumps({"elements": [{"text": text} for text in texts]})
    return body_cooperatively(Body, scan_json(raw), "elements", TypeAdapter(Element))


@pytest.mark.parametrize("count", [1, 2, 3 * STEP_WEIGHT])
def test_each_element_is_validated_once_and_keeps_its_place(count: int) -> None:
    texts = [str(number) for number in range(count)]
    assert [element.text for element in result_of(reading(texts)).elements] == texts
    assert validated == texts


def test_no_step_validates_more_than_its_weight() -> None:
    done = [len(validated) for _ in reading(["x"] * 3 * STEP_WEIGHT)]
    assert len(done) >= 2
    assert max(after - before for before, after in zip([0, *done], [*done, len(validated)], strict=True)) <= STEP_WEIGHT


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_of_a_long_body_is_validated_before_its_long_step_is_told(count: int) -> None:
    steps = reading(["data:image/png;base64," + STEP_BYTES * "A"] * count)
    while next(steps) is not Pause.BEFORE_LONG:
        assert not validated
    assert not validated
    assert len(result_of(steps).elements) == len(validated) == count
