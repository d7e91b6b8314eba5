"""What searches read of documents, with their digests, in the index of SQLite."""

from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

_EARLIER = ["knowledge_base_id", "edition_id", "id", "name", "chunk_count", "file_id", "filename", "attributes"]


def upgrade() -> None:
    """Make the index anew: the release before reads of it what it did."""
    _replace([*_EARLIER, "sha256"])


def downgrade() -> None:
    """Take the digests out."""
    _replace(_EARLIER)


def _replace(columns: list[str]) -> None:
    if op.get_context().dialect.name == "sqlite":
        op.drop_index("ix_document_shown", "document")
        op.create_index("ix_document_shown", "document", columns)
