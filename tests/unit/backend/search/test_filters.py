"""Filters over the attributes of documents."""

import pytest
from pydantic import TypeAdapter, ValidationError

from backend.search.domain.filters import Filter, Scalar, check_filter, matches
from shared.errors import InvalidRequest

ADAPTER: TypeAdapter[Filter] = TypeAdapter(Filter)
HELD: dict[str, Scalar] = {"kind": "tea", "grade": 2, "price": 2.5, "is_new": True}


def compared(kind: str, key: str, value: object) -> dict[str, object]:
    return {"type": kind, "key": key, "value": value}


@pytest.mark.parametrize(
    ("given", "is_passed"),
    [
        (compared("eq", "kind", "tea"), True),
        (compared("eq", "kind", "Tea"), False),
        (compared("ne", "kind", "tea"), False),
        (compared("eq", "grade", 2.0), True),
        (compared("eq", "grade", "2"), False),
        (compared("eq", "is_new", 1), False),
        (compared("eq", "is_new", True), True),
        (compared("gt", "grade", 1), True),
        (compared("gt", "grade", 2), False),
        (compared("gte", "grade", 2), True),
        (compared("lt", "price", 3), True),
        (compared("lte", "price", 2.4), False),
        (compared("gt", "kind", "sea"), True),
        (compared("gt", "kind", 1), False),
        (compared("gt", "is_new", False), False),
        (compared("in", "kind", ["wine", "tea"]), True),
        (compared("in", "grade", [1, 3]), False),
        (compared("nin", "grade", [1, 3]), True),
        (compared("eq", "none", "x"), False),
        (compared("lt", "none", 1), False),
        (compared("in", "none", ["x"]), False),
        (compared("ne", "none", "x"), True),
        (compared("nin", "none", ["x"]), True),
    ],
)
def test_a_comparison(given: dict[str, object], is_passed: bool) -> None:
    assert matches(ADAPTER.validate_python(given), HELD) is is_passed


def test_compounds_are_nested() -> None:
    yes, no = compared("eq", "kind", "tea"), compared("eq", "kind", "wine")
    either = {"type": "or", "filters": [no, {"type": "and", "filters": [yes, yes]}]}
    assert matches(ADAPTER.validate_python(either), HELD)
    assert not matches(ADAPTER.validate_python({"type": "and", "filters": [either, no]}), HELD)


@pytest.mark.parametrize(
    "given",
    [
        compared("like", "kind", "tea"),
        compared("eq", "", "tea"),
        compared("eq", "kind", None),
        compared("in", "kind", []),
        compared("in", "kind", "tea"),
        compared("eq", "kind", ["tea"]),
        compared("eq", "kind", float("nan")),
        {"type": "and", "filters": []},
        {"type": "and", "filters": [dict[str, object]()]},
        {**compared("eq", "kind", "tea"), "more": 1},
    ],
)
def test_what_is_no_filter(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(given)


def test_a_filter_is_bounded_in_depth_and_size() -> None:
    deep: dict[str, object] = compared("eq", "kind", "tea")
    for _ in range(7):
        deep = {"type": "and", "filters": [deep]}
    check_filter(ADAPTER.validate_python(deep), "filters")
    wide = {"type": "or", "filters": [compared("eq", "kind", "tea")] * 64}
    for too_much in ({"type": "and", "filters": [deep]}, wide):
        with pytest.raises(InvalidRequest, match="8 levels"):
            check_filter(ADAPTER.validate_python(too_much), "filters")
