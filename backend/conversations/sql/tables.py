"""The tables of conversations, their logs and items, responses and model calls."""

from sqlalchemy import BigInteger, Boolean, Column, ColumnElement, ForeignKey, Index, Integer, Table, Text, text

from backend.foundation.sql.schema import Instant, metadata, require

IS_RUNNING = text("status IN ('queued', 'in_progress')")
"""Plain text, because a database uses a partial index only for queries that repeat its condition."""


IS_SHARED = text("members IS NOT NULL")
HAS_LABEL = text("label IS NOT NULL")


def _conversation_key() -> Column[str]:
    return Column("conversation_id", Text, ForeignKey("conversation.id", ondelete="CASCADE"), primary_key=True)


# `turn_defaults` is the JSON of the newest turn's `ConversationSettings`, `sent_prompt` that of the newest model call's
# `SentPrompt`. `preset_use` is that of a turn's `PresetUse`, `search_filters` that of its filters, which the release
# before would refuse in `turn_defaults`. Both hold only where that turn is the newest, because the release before
# begins turns and leaves them as they are. `members` is the JSON of the roles of those with whom its owner has shared
# the conversation, by user id; it is NULL until then.
conversation = Table(
    "conversation",
    metadata,
    Column("id", Text, primary_key=True),
    require("tenant", Text),
    require("user_id", Text),
    require("created_at", Instant),
    require("metadata", Text),
    require("log_length", Integer),
    require("epoch", Integer),
    require("turn_defaults", Text),
    require("cache_key", Text),
    Column("running_response_id", Text),
    Column("latest_response_id", Text),
    Column("sent_prompt", Text),
    Column("preset_use", Text),
    Column("search_filters", Text),
    Column("served_tools", Text),
    Column("members", Text),
    Index(None, "tenant", "user_id", "created_at"),
    Index("ix_conversation_shared", "tenant", sqlite_where=IS_SHARED, postgresql_where=IS_SHARED),
)

# `content` is the message in JSON; a void entry has none. `label` names the knowledge from which the text may come.
# `reset` and `context` are the JSON of the `EpochState` of an epoch and of the `ContextState` after a context message.
# `reset_additions` holds the fields of a reset that the release before does not know, `placed` the kind and the mark of
# an entry of which it knows no kind: it sends such an entry as a notice.
log_entry = Table(
    "log_entry",
    metadata,
    _conversation_key(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    require("epoch", Integer),
    require("turn_id", Text),
    require("kind", Text),
    Column("role", Text),
    Column("label", Text),
    Column("content", Text),
    require("created_at", Instant),
    Column("reset", Text),
    Column("context", Text),
    Column("reset_additions", Text),
    Column("placed", Text),
    Index("ix_log_entry_labelled", "turn_id", sqlite_where=HAS_LABEL, postgresql_where=HAS_LABEL),
)

# A fork copies items with their ids, so an id is unique within its conversation only.
item = Table(
    "item",
    metadata,
    _conversation_key(),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    require("id", Text),
    Column("response_id", Text),
    require("body", Text),
    Index(None, "conversation_id", "id", unique=True),
    Index(None, "id"),
)

# Items that were taken out of their conversations. They are kept because a fork of an earlier response has them, and
# because their sequences are not given again. `removed_at` is the length of the log before.
removed_item = Table(
    "removed_item",
    metadata,
    _conversation_key(),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("removed_at", Integer, primary_key=True, autoincrement=False),
    require("id", Text),
    Column("response_id", Text),
    require("body", Text),
)

# There is no foreign key, because responses stay when their conversation is deleted. `partial_output` is the checkpoint
# of a running turn. A response that is deleted while its turn runs is marked, and its row is deleted at the turn's end.
# The process `replica` runs the turn; a turn that its process has given up has an empty one. Each process that takes
# the turn over raises `fence`. `plan`, `context_parts` and `settled_event` are for them: see `TakenTurn`;
# the release before refuses a plan that holds what is in `context_parts`.
response = Table(
    "response",
    metadata,
    Column("id", Text, primary_key=True),
    require("tenant", Text),
    require("user_id", Text),
    require("conversation_id", Text),
    require("created_at", Instant),
    require("status", Text),
    require("background", Boolean),
    require("body", Text),
    require("input_items", Text),
    Column("partial_output", Text),
    Column("log_end", Integer),
    Column("items_end", Integer),
    require("last_event", Integer),
    require("replica", Text),
    require("is_deleted", Boolean),
    Column("label", Text),
    require("fence", Integer, server_default="0"),
    Column("plan", Text),
    Column("settled_event", Integer),
    Column("preset_use", Text),
    Column("context_parts", Text),
    Index("ix_response_running", "replica", sqlite_where=IS_RUNNING, postgresql_where=IS_RUNNING),
)

# Turns that were acknowledged and wait for their conversation; the one with the lowest `place` comes next. `body`,
# `input_items` and `label` are those of their responses, `asked` is what is needed to begin them.
# `entered_id` is the response whose turn a message has entered instead, when that one showed `entered_at` items of
# output; the row then says what became of its own id.
waiting_turn = Table(
    "waiting_turn",
    metadata,
    Column("id", Text, primary_key=True),
    require("conversation_id", Text, ForeignKey("conversation.id", ondelete="CASCADE")),
    require("place", Integer),
    require("if_running", Text),
    require("tenant", Text),
    require("user_id", Text),
    require("created_at", Instant),
    require("expires_at", Instant),
    require("background", Boolean),
    require("body", Text),
    require("input_items", Text),
    Column("label", Text),
    require("asked", Text),
    Column("entered_id", Text, ForeignKey("response.id", ondelete="CASCADE"), index=True),
    Column("entered_at", Integer),
    Index(None, "conversation_id", "place", unique=True),
)

# What a client had seen of a conversation at the end of a response: `digest` is the fingerprint of the history
# (domain/history_fingerprint.py) with user and tenant. Of equal ones the highest `id` is the newest. `header` and
# `bases` are the turn's `SettingsDigest`; rows of the release before have none.
seen_point = Table(
    "seen_point",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    require("digest", Text),
    require("conversation_id", Text, ForeignKey("conversation.id", ondelete="CASCADE"), index=True),
    require("response_id", Text, ForeignKey("response.id", ondelete="CASCADE")),
    require("log_end", Integer),
    Column("header", Text),
    Column("bases", Text),
    Index(None, "response_id", unique=True),
    Index(None, "digest", "id"),
    sqlite_autoincrement=True,
)

# The tools and the system prompt that several calls of a conversation share.
prompt_header = Table(
    "prompt_header",
    metadata,
    _conversation_key(),
    Column("digest", Text, primary_key=True),
    require("tools", Text),
    require("system_prompt", Text),
)

# The texts of messages that stand in prompts, but in no log, and that several calls of a conversation share; `content`
# is JSON, because PostgreSQL takes no NUL in a text.
placed_text = Table(
    "placed_text",
    metadata,
    _conversation_key(),
    Column("digest", Text, primary_key=True),
    require("content", Text),
)

# `header` is the digest of a row in `prompt_header`; `tail`, `reuse`, `usage` and `left_out` are JSON. `placed` is the
# JSON of what the release before does not know of a call; its texts are rows of `placed_text`.
model_call = Table(
    "model_call",
    metadata,
    Column("response_id", Text, primary_key=True),
    Column("call", Integer, primary_key=True, autoincrement=False),
    require("conversation_id", Text, ForeignKey("conversation.id", ondelete="CASCADE"), index=True),
    require("epoch", Integer),
    Column("epoch_reason", Text),
    require("log_end", Integer),
    require("header", Text),
    Column("tail", Text),
    require("reuse", Text),
    Column("shortfall", Text),
    Column("usage", Text),
    Column("cost", Text),
    Column("placed", Text),
    Column("gauge", Text),
    Column("summary_of", Text),
    Column("left_out", Text),
    Column("miss", Text),
)

# The lease of a process on its turns ends at `expires_at`; from `trusted_from` on it may judge others. Both are times
# of the database; the previous release, which judges by `seen_at`, leaves them empty.
replica = Table(
    "replica",
    metadata,
    Column("name", Text, primary_key=True),
    require("seen_at", Instant),
    Column("expires_at", Instant),
    Column("trusted_from", Instant),
)

WITHDRAWAL = {"tenant": "", "running_response_id": "withdrawn"}
"""What takes a conversation from everybody, in one statement: no caller has an empty tenant, and a turn may not begin.

Its rows are deleted afterwards, in short transactions.
"""

IS_WITHDRAWN: ColumnElement[bool] = (conversation.c.tenant == WITHDRAWAL["tenant"]) & (
    conversation.c.running_response_id == WITHDRAWAL["running_response_id"]
)
