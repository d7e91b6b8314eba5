"""`python -m backend reindex`: make the index of words anew from the documents, while replicas serve."""

from backend.reaching import reach_database
from backend.search.sql.index import SqlSearchIndex
from backend.settings import DatabaseSettings
from shared.clock import SystemClock
from shared.environment import WrongSetting, cause_of
from shared.errors import Unavailable


async def reindex_database(settings: DatabaseSettings) -> None:
    """Index all chunks anew, and print how far it is.

    Raises:
        WrongSetting: the database cannot be used, or went away.
    """
    async with reach_database(settings) as database:
        try:
            async for done, chunks in SqlSearchIndex(database, SystemClock()).reindex():
                print(f"{done} of {chunks} chunks indexed", flush=True)  # noqa: T201 -- the command's answer
        except Unavailable as error:
            raise WrongSetting(f"BACKEND_DATABASE_URL: the database went away ({cause_of(error)})") from None
