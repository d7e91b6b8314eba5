"""Parts of all tables: one `metadata`, a column type for instants, and columns that are never NULL."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, DateTime, Dialect, MetaData, TypeDecorator

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


class Instant(TypeDecorator[datetime]):
    """A time-zone-aware instant, stored and returned in UTC; SQLite has no time zones and stores it without one."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert an aware instant to UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("An instant needs a time zone.")
        in_utc = value.astimezone(UTC)
        return in_utc.replace(tzinfo=None) if dialect.name == "sqlite" else in_utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Add the time zone where the database does not store it."""
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


def require(name: str, kind: Any, *arguments: Any, **options: Any) -> Column[Any]:
    """Make a column that is never NULL."""
    return Column(name, kind, *arguments, nullable=False, **options)
