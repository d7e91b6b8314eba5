"""Prometheus metrics of the database's connections and of the event store."""

from typing import Protocol, runtime_checkable

from prometheus_client import Gauge

from backend.foundation.ports.readiness import Presence

CONNECTIONS_IN_USE = Gauge("ballast_database_connections_in_use", "Connections that are in use; 0 on SQLite")
CONNECTIONS_MOST = Gauge("ballast_database_connections_most", "As many as there may be; 0 on SQLite")
EVENT_STORE_AWAY = Gauge("ballast_event_store_away", "1 while Redis takes no writes")


@runtime_checkable
class PooledDatabase(Protocol):
    """A database that is reached over a pool of connections."""

    @property
    def connections_in_use(self) -> int:
        """How many of its connections are in use now."""
        ...

    @property
    def connections_most(self) -> int:
        """How many there may be."""
        ...


def watch_stores(database: object, event_store: Presence | None) -> None:
    """Show from now on how these are."""
    if isinstance(database, PooledDatabase):
        CONNECTIONS_IN_USE.set_function(lambda: database.connections_in_use)
        CONNECTIONS_MOST.set(database.connections_most)
    if event_store is not None:
        EVENT_STORE_AWAY.set_function(lambda: event_store.is_away)
