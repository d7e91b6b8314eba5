"""Bases in a database, with the built-in index."""

from collections.abc import Sequence

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import SLICE_SECONDS
from backend.knowledge.sql.document_changes import DeletionHook
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.search.sql.chosen import choose_index
from backend.search.sql.index import SqlSearchIndex
from backend.search.sql.word_runs import SqlWordRuns
from shared.clock import Clock


def knowledge_store(
    database: Database,
    clock: Clock,
    slice_seconds: float = SLICE_SECONDS,
    deletion_hooks: Sequence[DeletionHook] = (),
) -> SqlKnowledgeStore:
    index = SqlSearchIndex(database, clock, slice_seconds)
    return SqlKnowledgeStore(database, clock, index, slice_seconds, deletion_hooks)


def word_runs(database: Database) -> SqlWordRuns:
    return SqlWordRuns(database, choose_index(database))
