"""What a hostile model of the leak test is."""

from collections.abc import Callable
from typing import NamedTuple

from tests.leaks.hostile.replies import Behaviour, carried, strict
from tests.leaks.hostile.shown import Shown

PLACES = 12
"""A number below it says in which field of an answer a payload goes, and in which words."""


class Stub(NamedTuple):
    """A secondary model. `gives_away` is false for those whose reply holds nothing protected.

    What one that is not asserted gets out is told in the table and fails nothing: so far from the text it is retelling.
    """

    name: str
    reply: Callable[[Shown], Behaviour]
    gives_away: bool = True
    is_asserted: bool = True


def said(write: Callable[[Shown], str]) -> Callable[[Shown], Behaviour]:
    """Put what a function writes into a field of an answer that looks honest, and call its release a leak."""

    def reply(shown: Shown) -> Behaviour:
        payload = write(shown)
        return strict(carried(payload, shown.language, shown.dice.randrange(PLACES)), payload)

    return reply
