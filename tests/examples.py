"""How much is tried of what has no end, or many forms: a little in `make test`, all of it in `make test-thorough`.

Fewer examples of the same strategies, never narrower strategies. Of the forms of one behaviour `make test` tries the
first, and `make test-all` each.
"""

import os

import pytest
from hypothesis import settings

IS_THOROUGH = os.environ.get("TESTS_THOROUGH") == "1"
FEWER = 10 if os.environ.get("TESTS_BRIEF") == "1" else 5
"""So many times fewer examples are tried in `make test`, and otherwise, than a property's budget says."""


def of_many(many: int, *, few: int | None = None) -> int:
    """Return the number to try: `many` in a thorough run, else `few`, by default a part of `many`."""
    return many if IS_THOROUGH else few or many // FEWER


def examples(many: int, *, few: int | None = None) -> settings:
    """Return the budget of a property: `many` examples in a thorough run, else `few`, by default a part."""
    return settings(max_examples=of_many(many, few=few))


def first_of(first: object, *others: object) -> list[object]:
    """Return what to try a behaviour with, such as stores or protocols: `make test` tries it with the first alone."""
    return [first, *(pytest.param(other, marks=pytest.mark.combination) for other in others)]
