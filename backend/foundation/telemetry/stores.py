"""Prometheus metrics of the database's connections and of the event store."""

from prometheus_client import Gauge

from backend.foundation.ports.readiness import Presence

CONNECTIONS_IN_USE = Gauge("ballast_database_connections_in_use", "Connections that are in use; 0 on SQLite")
CONNECTIONS_MOST = Gauge("ballast_database_connections_most", "As many as there may be; 0 on SQLite")
EVENT_STORE_AWAY = Gauge("ballast_event_store_away", "1 while Redis takes no writes")


def watch_stores(database: object, event_store: Presence | None) -> None:
    """Show from now on how these are; a database without a pool has no connections to show."""
    CONNECTIONS_IN_USE.set_function(lambda: getattr(database, "connections_in_use", 0))
    CONNECTIONS_MOST.set(getattr(database, "connections_most", 0))
    if event_store is not None:
        EVENT_STORE_AWAY.set_function(lambda: event_store.is_away)
