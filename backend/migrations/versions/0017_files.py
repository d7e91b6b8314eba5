"""Uploaded files, and files that are attached to knowledge bases."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)
_DOCUMENT_COLUMNS = ("file_id", "filename", "attributes")


def upgrade() -> None:
    """Make the tables; an earlier release beside this one stores documents and bases without the new columns."""
    for name in _DOCUMENT_COLUMNS:
        op.add_column("document", sa.Column(name, sa.Text))
    op.create_index("ix_document_file_id", "document", ["file_id"])
    op.add_column("knowledge_base", sa.Column("metadata", sa.Text))
    op.add_column("knowledge_base", sa.Column("last_active_at", _INSTANT))
    _create_files()
    _create_attachments()


def downgrade() -> None:
    """Drop them; documents that were read from files stay, under their names."""
    for table in ("file_batch_member", "file_batch", "attachment", "file_piece", "uploaded_file"):
        op.drop_table(table)
    op.drop_column("knowledge_base", "last_active_at")
    op.drop_column("knowledge_base", "metadata")
    op.drop_index("ix_document_file_id", "document")
    for name in _DOCUMENT_COLUMNS:
        op.drop_column("document", name)


def _create_files() -> None:
    op.create_table(
        "uploaded_file",
        sa.Column("id", sa.Text, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("tenant", "user_id", "filename", "purpose")),
        sa.Column("content_type", sa.Text),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("touched_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_uploaded_file"),
    )
    of_user = ["tenant", "user_id", "created_at", "id"]
    op.create_index("ix_uploaded_file_tenant_user_id_created_at_id", "uploaded_file", of_user)
    op.create_index("ix_uploaded_file_state_touched_at", "uploaded_file", ["state", "touched_at"])
    op.create_table(
        "file_piece",
        sa.Column("file_id", sa.Text, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("file_id", "ordinal", name="pk_file_piece"),
        sa.ForeignKeyConstraint(["file_id"], ["uploaded_file.id"], name="fk_file_piece_file_id", ondelete="CASCADE"),
    )


def _create_attachments() -> None:
    op.create_table(
        "attachment",
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("file_id", sa.Text, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("tenant", "user_id", "filename", "status")),
        sa.Column("attributes", sa.Text, nullable=False),
        sa.Column("error_code", sa.Text),
        sa.Column("error_message", sa.Text),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("leased_until", _INSTANT),
        sa.PrimaryKeyConstraint("knowledge_base_id", "file_id", name="pk_attachment"),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"], ["knowledge_base.id"], name="fk_attachment_knowledge_base_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_attachment_file_id", "attachment", ["file_id"])
    is_waiting = sa.text("status = 'in_progress'")
    op.create_index(
        "ix_attachment_waiting",
        "attachment",
        ["tenant", "user_id", "created_at"],
        sqlite_where=is_waiting,
        postgresql_where=is_waiting,
    )
    op.create_table(
        "file_batch",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("is_cancelled", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_file_batch"),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"], ["knowledge_base.id"], name="fk_file_batch_knowledge_base_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_file_batch_knowledge_base_id", "file_batch", ["knowledge_base_id"])
    op.create_table(
        "file_batch_member",
        sa.Column("batch_id", sa.Text, nullable=False),
        sa.Column("file_id", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("batch_id", "file_id", name="pk_file_batch_member"),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["file_batch.id"], name="fk_file_batch_member_batch_id", ondelete="CASCADE"
        ),
    )
