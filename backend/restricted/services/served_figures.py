"""The figures that the main model may have from restricted searches, as one model call can know them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from backend.restricted.ports.restricted import ServedTexts
from shared.errors import Unavailable
from shared.plain_text.figures import Figure, FigureSet, telling_figures


class ServedFigures:
    """The figures that a user's restricted searches had brought when the present model call began.

    What the searches bring for which a call asks, it cannot have told: its queries and arguments are older.
    """

    def __init__(self, served: ServedTexts, user_id: str, base_ids: Sequence[str]) -> None:
        self._served = served
        self._user_id = user_id
        self._base_ids = base_ids
        self._has_noted = False
        self._until: datetime | None = None
        self._figures: FigureSet | None = None

    async def begin_call(self) -> None:
        """Note what has been served by now; what cannot be noted now is asked for when it matters."""
        self._has_noted, self._figures = False, None
        with suppress(Unavailable):
            await self._note()

    async def holds(self, said: frozenset[Figure]) -> bool:
        """Tell whether one of these figures was served before the call began; looked up at the first question.

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
