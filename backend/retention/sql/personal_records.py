"""Records about a person beside their texts, as an export shows them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Column, Select, Table, select

from backend.conversations.sql.tables import waiting_turn
from backend.identity.sql.tables import api_key
from backend.knowledge.sql.tables import attachment
from backend.restricted.sql.tables import restricted_member, restricted_search
from backend.scim.sql.tables import scim_user
from shared.models.values import JsonObject


class RecordForm(NamedTuple):
    """How rows of a table are shown: as lines of a type, with these columns, of which some hold JSON."""

    type: str
    table: Table
    columns: tuple[Column[Any], ...]
    json_columns: tuple[str, ...] = ()

    @property
    def query(self) -> Select[Any]:
        """The query for all rows."""
        return select(*self.columns)

    def line(self, row: Mapping[str, Any]) -> JsonObject:
        """Return a row as an object with a `type`."""
        return {"type": self.type} | {name: self._show(name, value) for name, value in row.items()}

    def _show(self, name: str, value: Any) -> Any:
        if name in self.json_columns:
            return orjson.loads(value)
        return value.isoformat() if isinstance(value, datetime) else value


_key, _turn, _search, _file, _listed = api_key.c, waiting_turn.c, restricted_search.c, attachment.c, scim_user.c

RECORD_FORMS = (
    RecordForm("api_key", api_key, (_key.id, _key.role, _key.created_at, _key.expires_at, _key.last_used_at)),
    RecordForm(
        "waiting_turn",
        waiting_turn,
        (_turn.id, _turn.conversation_id, _turn.created_at, _turn.input_items),
        json_columns=("input_items",),
    ),
    RecordForm("attached_file", attachment, (_file.knowledge_base_id, _file.file_id, _file.created_at, _file.status)),
    RecordForm(
        "restricted_search",
        restricted_search,
        (_search.id, _search.conversation_id, _search.searched_at, _search.bases),
        json_columns=("bases",),
    ),
    RecordForm(
        "directory_user",
        scim_user,
        (_listed.id, _listed.external_id, _listed.active, _listed.resource, _listed.created_at, _listed.changed_at),
        json_columns=("resource",),
    ),
)
"""Tables whose rows name tenant and user. What a restricted search asked and was given is stored nowhere by user."""

USAGE_FORM = RecordForm(
    "restricted_usage",
    restricted_member,
    (restricted_member.c.knowledge_base_id, restricted_member.c.refused_at, restricted_member.c.paused_until),
    json_columns=("refused_at",),
)
