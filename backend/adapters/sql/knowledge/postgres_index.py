"""BM25 on PostgreSQL: postings of our own, because `ts_rank` knows no word frequencies.

A row of `search_posting` holds one word's postings among 256 chunks of one base, packed. A row stays under the
2 kB beyond which PostgreSQL would move it out of the table.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from backend.adapters.sql.knowledge.search_index import BaseSize, Found, NumberedEntry
from backend.domain.bm25 import SCORE_DECIMALS, K1, Query, Statistics, length_norm, looked_up_terms, plan

_CHUNKS_PER_ROW = 256
_POSTING = np.dtype([("number", "<u4"), ("count", "<u2"), ("length", "<u2")])
_MOST = 0xFFFF
"""Counts and lengths beyond it are kept as this; a chunk of 400 tokens has some hundreds."""

_IN_QUERY = "knowledge_base_id = ANY(CAST(:base_ids AS text[])) AND term = ANY(CAST(:terms AS text[]))"
_COUNT_TERMS = text(f"""
    SELECT term, SUM(octet_length(postings) / {_POSTING.itemsize}) FROM search_posting WHERE {_IN_QUERY} GROUP BY term
""")
_READ = text(f"SELECT knowledge_base_id, term, postings FROM search_posting WHERE {_IN_QUERY}")
_APPEND = text("""
    INSERT INTO search_posting (knowledge_base_id, term, block, postings)
    SELECT :base_id, term, block, postings FROM
        unnest(CAST(:terms AS text[]), CAST(:blocks AS integer[]), CAST(:postings AS bytea[])) AS
        added (term, block, postings)
    ON CONFLICT (knowledge_base_id, term, block)
    DO UPDATE SET postings = search_posting.postings || excluded.postings
""")
_READ_BLOCKS = text("""
    SELECT term, block, postings FROM search_posting WHERE knowledge_base_id = :base_id
    AND term = ANY(CAST(:terms AS text[])) AND block = ANY(CAST(:blocks AS integer[]))
""")
_REPLACE = text("""
    UPDATE search_posting SET postings = changed.postings FROM
        unnest(CAST(:terms AS text[]), CAST(:blocks AS integer[]), CAST(:postings AS bytea[])) AS
        changed (term, block, postings)
    WHERE knowledge_base_id = :base_id AND search_posting.term = changed.term AND search_posting.block = changed.block
""")
_FORGET_EMPTY = text("""
    DELETE FROM search_posting WHERE knowledge_base_id = :base_id AND term = ANY(CAST(:terms AS text[]))
    AND block = ANY(CAST(:blocks AS integer[])) AND postings = ''
""")
_DROP = text("DELETE FROM search_posting WHERE knowledge_base_id = :base_id")
_KEYS = text("""
    SELECT number, content_key FROM chunk
    WHERE knowledge_base_id = :base_id AND number = ANY(CAST(:numbers AS integer[]))
    ORDER BY content_key LIMIT :limit
""")

_Block = tuple[str, int]
_Postings = NDArray[Any]
