"""Vectors of equal texts are looked up within a base alone (ADR 0034)."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Exchange indexes, which earlier code does without; a table of vectors that was just made has the new one."""
    op.drop_index("ix_chunk_claim_digest", "chunk_claim")
    if _has_vectors():
        op.create_index("ix_search_vector_space_id_digest", "search_vector", ["space_id", "digest"], if_not_exists=True)
        op.drop_index("ix_search_vector_digest", "search_vector", if_exists=True)


def downgrade() -> None:
    """Make the index of claims again; the table of vectors belongs to no revision and stays as it is."""
    op.create_index("ix_chunk_claim_digest", "chunk_claim", ["digest"])


def _has_vectors() -> bool:
    """Say whether the table is there, which PostgreSQL has only with pgvector."""
    return sa.inspect(op.get_bind()).has_table("search_vector")
