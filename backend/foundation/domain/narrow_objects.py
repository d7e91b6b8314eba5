"""Objects with few members, which are refused before anything in them is looked at.

pydantic makes a complaint of each wrong member: an object of ten thousand takes it half a second.
"""

from typing import cast

from pydantic import BeforeValidator
from pydantic_core import PydanticKnownError


def at_most(members: int) -> BeforeValidator:
    """Return the validator of a JSON object that has no more than so many members."""

    def check(given: object) -> object:
        count = len(cast(dict[str, object], given)) if isinstance(given, dict) else 0
        if count > members:
            context = {"field_type": "Dictionary", "max_length": members, "actual_length": count}
            raise PydanticKnownError("too_long", context)
        return cast(object, given)

    return BeforeValidator(check)
