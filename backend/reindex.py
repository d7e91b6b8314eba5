"""`python -m backend reindex`: make the index of words anew from the documents, while replicas serve."""

from contextlib import AsyncExitStack

from backend.embeddings.services.question_vectors import NO_MEANING
from backend.reaching import reach_database, reach_engine
from backend.search.wiring import build_search
from backend.settings import DatabaseSettings
from shared.clock import SystemClock
from shared.environment import WrongSetting, cause_of
from shared.errors import Unavailable


async def reindex_database(settings: DatabaseSettings) -> None:
    """Index all chunks anew, in the database and then in the engine beside it, and print how far it is.

    Raises:
        WrongSetting: the database or the engine cannot be used, or went away.
    """
    async with reach_database(settings) as database, AsyncExitStack() as stack:
        index = build_search(database, SystemClock(), NO_MEANING, reach_engine(settings, stack)).index
        try:
            async for done, chunks in index.reindex():
                print(f"{done} of {chunks} chunks indexed", flush=True)  # noqa: T201 -- the command's answer
        except Unavailable as error:
            raise WrongSetting(f"BACKEND_DATABASE_URL: the database went away ({cause_of(error)})") from None
