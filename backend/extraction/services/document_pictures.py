"""The pictures of one document, read one after another within a time for each and for all."""

import asyncio

from backend.extraction.domain.pictures import PictureAnswer, PictureTime
from backend.extraction.ports import PictureReader
from shared.errors import ModelRequestRejected, Unavailable

MAX_TEXT_CHARACTERS = 200_000


class DocumentPictures:
    """Asks the engine, until it is away or the time of the document is over; `were_asked` tells whether any came."""

    def __init__(self, engine: PictureReader, time: PictureTime) -> None:
        self._engine = engine
        self._time = time
        self._left_seconds = time.document_seconds
        self._gave_up = ""
        self.were_asked = False

    async def read(self, picture: bytes) -> PictureAnswer:
        """Return the text of a JPEG, or why it was not read; it raises nothing that the engine raises."""
        self.were_asked = True
        if self._left_seconds <= 0:
            limit = f"reading a document's pictures takes more than {self._time.document_seconds:g} seconds"
            return PictureAnswer(failure=limit)
        if self._gave_up:
            return PictureAnswer(failure=self._gave_up)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self._ask(picture)
        finally:
            self._left_seconds -= loop.time() - began

    async def _ask(self, picture: bytes) -> PictureAnswer:
        seconds = min(self._time.seconds, self._left_seconds)
        try:
            async with asyncio.timeout(seconds):
                text = await self._engine.read_picture(picture)
        except TimeoutError:
            return PictureAnswer(failure=f"reading it takes more than {seconds:.3g} seconds")
        except ModelRequestRejected as error:
            return PictureAnswer(failure=error.message)
        except Unavailable as error:
            self._gave_up = error.message
            return PictureAnswer(failure=error.message)
        return PictureAnswer(text=text[:MAX_TEXT_CHARACTERS])
