"""The first contact with a database, which tells an operator in one line what is wrong with its address."""

import sqlite3

from sqlalchemy.exc import DBAPIError

from backend.foundation.sql.database import Database
from shared.environment import cause_of, shown_address
from shared.errors import Unavailable


async def check_reachable(database: Database, url: str) -> None:
    """Ask the database something as soon as the process starts.

    Raises:
        ValueError: it is not there, or does not let us in; the text holds neither user nor password.
    """
    try:
        await database.ping()
    except (Unavailable, DBAPIError, sqlite3.Error) as error:
        raise ValueError(f"cannot use {shown_address(url)} ({cause_of(error)})") from None
