"""The figures of restricted searches that the output of the present model call can repeat."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from backend.restricted.ports.restricted import ServedTexts
from shared.errors import Unavailable
from shared.plain_text.figures import Figure, FigureSet, telling_figures


class ServedFigures:
    """The figures in the chunks that a user's restricted searches had sent when the present model call began.

    A call cannot repeat figures of the searches that it requests: its queries and arguments come before them.
    """

    def __init__(self, served: ServedTexts, user_id: str, base_ids: Sequence[str]) -> None:
        self._served = served
        self._user_id = user_id
        self._base_ids = base_ids
        self._has_noted = False
        self._until: datetime | None = None
        self._figures: FigureSet | None = None

    async def begin_call(self) -> None:
        """Note the instant of the newest search; while the database is away, that is left to the first look-up."""
        self._has_noted, self._figures = False, None
        with suppress(Unavailable):
            await self._note()

    async def holds(self, said: frozenset[Figure]) -> bool:
        """Return whether one of these figures was served before the call began; the first look-up reads the chunks.

        Raises:
            Unavailable: the database is away.
        """
        if not self._has_noted:
            await self._note()
        if self._until is None:
            return False
        if self._figures is None:
            texts = await self._served.served_texts(self._user_id, self._base_ids, self._until)
            self._figures = await asyncio.to_thread(_figures_in, texts)
        return any(map(self._figures.holds, said))

    async def _note(self) -> None:
        self._until = await self._served.newest_served(self._user_id, self._base_ids)
        self._has_noted = True


def _figures_in(texts: Sequence[str]) -> FigureSet:
    return FigureSet(frozenset(figure for text in texts for figure in telling_figures(text)))
