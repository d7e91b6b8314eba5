"""What searches read of documents, in an index of SQLite."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_COLUMNS = ["knowledge_base_id", "edition_id", "id", "name", "chunk_count", "file_id", "filename", "attributes"]


def upgrade() -> None:
    """Make the index, which the release before keeps without knowing of it."""
    if op.get_context().dialect.name == "sqlite":
        op.create_index("ix_document_shown", "document", _COLUMNS)


def downgrade() -> None:
    """Drop it."""
    if op.get_context().dialect.name == "sqlite":
        op.drop_index("ix_document_shown", "document")
