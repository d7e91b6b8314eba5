"""The table of releases and schemas: which code may run on which schema.

A revision either *expands*: code of the release before reads and writes the schema as if nothing had happened. Or it
*contracts*: it takes away or changes what earlier code uses. Only the contractions are listed, and a test refuses a
revision that is not listed and takes something away.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

CONTRACTIONS = ("0009",)
"""Revisions that earlier code cannot run on. The first one stands for itself and all before it.

A release contracts only what no code of the release before it uses any more (docs/adr/0017).
"""

FOR_A_RELEASE_BEFORE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # its index of words: written so that it can search, read for documents that it has stored
        "backend/search/sql/legacy_index.py": (),
        "backend/search/sql/legacy_postings.py": (),
        "backend/search/sql/word_postings.py": ("LegacyPostings",),
        "backend/knowledge/sql/editions.py": ("NO_WORD",),
        "backend/knowledge/sql/document_changes.py": ("_count_tokens",),
        "backend/search/sql/indexed_bases.py": ("legacy", "IS_CHANGED"),
        "backend/search/sql/segment_index.py": ("_join_legacy",),
        "backend/search/sql/upkeep.py": ("index_legacy", "note_deleted", "_Legacy", "_Changed"),
        "backend/search/sql/index.py": ("index_legacy", "open_base", "drop_base"),
        "backend/search/services/embedding_worker.py": (),
        # its rows: columns that it leaves empty, and values that it would refuse, kept apart from those that it reads
        "backend/search/domain/chunks.py": ("attributes_in",),
        "backend/knowledge/sql/tables.py": ("indexed_version",),
        "backend/search/sql/tables.py": ("SEARCH_TABLES", "IS_UNINDEXED", "IS_CHANGED"),
        "backend/conversations/sql/codec.py": (
            "_FiltersUse",
            "_ServedUse",
            "_STORED_AS",
            "_FIRST_OF_RESET",
            "_Placed",
            "_KNOWN_REMINDER",
        ),
        "backend/conversations/sql/model_calls.py": ("_KNOWN_FIELDS", "_KNOWN_KIND", "_Placed"),
        "backend/conversations/sql/tables.py": ("reset_additions", "context_parts"),
        "backend/conversations/domain/model_calls.py": ("shown_shortfall",),
        "backend/conversations/domain/history_fingerprint.py": ("text_with_blank_lines",),
        "backend/prompt/domain/settings_digest.py": ("settings_digest",),
        "backend/prompt/domain/turn_record.py": ("index", "write_parts"),
        "backend/turns/services/origin_reader.py": ("text_with_blank_lines",),
        "backend/identity/domain.py": ("origin",),
        "backend/identity/ports.py": ("set_configured",),
        "backend/identity/sql/tables.py": ("origin",),
        "backend/identity/sql/api_keys.py": ("session_subject",),
        # its requests, events and tickets, in which it refuses a field that it does not know
        "backend/chat_shell_client/http_client.py": ("hand_back_tokens",),
        "backend/chat_shell_client/replica_links.py": ("CALLS_ONLY",),
        "backend/knowledge/domain/tickets.py": ("exclude_if",),
        "shared/models/events.py": (
            "REMINDERS_HEADER",
            "REMINDERS_STAY",
            "NEWER_EVENTS_HEADER",
            "NEWER_EVENTS",
            "exclude_if",
        ),
        "shared/models/execution.py": ("exclude_if",),
    }
)
"""By file the names of what such a release needs; all of a file where none is named. A file that speaks of one is here.

When a release is supported no more (docs/upgrading.md), what stands here for it goes.
"""

_VERSIONS = Path(__file__).parent / "versions"


def all_revisions() -> tuple[str, ...]:
    """Return the revisions that this code knows, the oldest first: the numbers with which names of scripts begin."""
    return tuple(sorted(path.stem.partition("_")[0] for path in _VERSIONS.glob("[0-9]*.py")))


def newest_revision() -> str:
    """Return the revision of this code's own schema."""
    return all_revisions()[-1]


def oldest_code_for(revision: str) -> str:
    """Return the oldest revision whose code may run on a schema of this revision."""
    return max((each for each in CONTRACTIONS if each <= revision), default=revision)
