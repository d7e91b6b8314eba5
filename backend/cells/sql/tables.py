"""The table of tenants that move between cells."""

from sqlalchemy import Column, Table, Text

from backend.foundation.sql.schema import Instant, metadata, require

# A tenant has a row in the cell that it leaves and one in that where it has arrived; `cell` names the other one.
# `stopped_until` ends a stop of writes that nobody has brought to its end. `held` lists the conversations in which
# turns ran at the stop: they go on where they are. `seen` is the oldest transaction that the newest copy may not have
# seen.
tenant_move = Table(
    "tenant_move",
    metadata,
    Column("tenant", Text, primary_key=True),
    require("cell", Text),
    require("phase", Text),
    Column("stopped_until", Instant),
    require("held", Text),
    Column("seen", Text),
)
