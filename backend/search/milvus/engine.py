"""Milvus as the engine of searches by words: a row a chunk, with a sparse vector of our own tokens.

The sum that a search orders by is the inner product of the words' weights with how much of BM25's weight each word
has in a chunk. Weights are made here from counts of the searched bases alone: Milvus' own BM25 function counts all
rows of a collection, so that a score would tell of bases which the caller may not read.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson

from backend.search.domain.bm25 import length_norm
from backend.search.domain.chunks import Allowed, Found, Range
from backend.search.domain.tokenizing import TOKENS_VERSION
from backend.search.milvus.chosen import MilvusLibrary
from backend.search.ports.engine import EngineChunk
from shared.errors import Unavailable

COLLECTION = f"ballast_chunks_{TOKENS_VERSION}"
"""Chunks of other tokens are in a collection of another name, which stays until an operator drops it."""

CALL_SECONDS = 5.0
SETTLE_SECONDS = 6.0
"""A search may be answered by a state that is 5 s old (`common.gracefulTime` of Milvus, by default 5,000 ms)."""

_CALLS_AT_ONCE = 32
_PARTITIONS = 64
_MOST_TOKENS = 4_096
_MEAN_LENGTH = 100.0
"""Index tokens that a chunk's length is set against: one number for all bases, since a vector is made once."""


class MilvusEngine:
    """The `ChunkEngine` over a collection, which is made at its first use. Close it with `close`."""

    def __init__(self, url: str, library: MilvusLibrary) -> None:
        self._library = library
        self._address = read_milvus_address(url)
        self._calls = asyncio.Semaphore(_CALLS_AT_ONCE)
        self._client: Any = None
        self._opening = asyncio.Lock()

    async def replace(self, base_id: str, numbers: Range, chunks: Sequence[EngineChunk]) -> None:
        """Put rows in the place of others, and delete what lies between them."""
        async with self._calling() as client:
            if chunks:
                rows = [_row(base_id, chunk) for chunk in chunks]
                await client.upsert(COLLECTION, data=rows, timeout=CALL_SECONDS)
            kept = [chunk.number for chunk in chunks]
            others = f" and number not in {kept}" if kept else ""
            if len(kept) < numbers.end_number - numbers.first_number:
                filter_text = f"{_are_of([base_id])} and {_within(numbers)}{others}"
                await client.delete(COLLECTION, filter=filter_text, timeout=CALL_SECONDS)

    async def count(self, base_ids: Sequence[str], tokens: Sequence[str] = ()) -> int:
        """Count rows by the index of their tokens."""
        hashes = [_hash(token) for token in tokens]
        having = f" and array_contains_any(tokens, {hashes})" if hashes else ""
        async with self._calling() as client:
            found = await client.query(
                COLLECTION, filter=_are_of(base_ids) + having, output_fields=["count(*)"], timeout=CALL_SECONDS
            )
            return int(found[0]["count(*)"])

    async def find(
        self,
        base_ids: Sequence[str],
        weights: Mapping[str, float],
        limit: int,
        allowed: Allowed,
    ) -> Sequence[Found]:
        """Search by the inner product."""
        chosen = _are_of(base_ids) if allowed is None else _are_allowed(allowed)
        if not chosen:
            return []
        query = {_dimension(_hash(token)): weight for token, weight in weights.items()}
        async with self._calling() as client:
            found = await client.search(
                COLLECTION,
                data=[query],
                anns_field="words",
                limit=limit,
                filter=chosen,
                output_fields=["base", "number"],
                search_params={"metric_type": "IP"},
                timeout=CALL_SECONDS,
            )
        hits = ((hit["entity"], hit["distance"]) for hit in found[0])
        return [Found(entity["base"], entity["number"], score) for entity, score in hits]

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def _calling(self) -> AsyncGenerator[Any]:
        """Give the client; what goes wrong is an engine that is away, and the next call opens it again."""
        async with self._calls:
            try:
                async with self._opening:
                    if self._client is None:
                        self._client = await self._open()
                yield self._client
            except self._library.errors as error:
                await self.close()
                raise Unavailable(f"Milvus cannot be used: {type(error).__name__}.") from error

    async def _open(self) -> Any:
        client = self._library.connect(**self._address, timeout=CALL_SECONDS)
        if not await client.has_collection(COLLECTION, timeout=CALL_SECONDS):
            await self._make_collection(client)
        await client.load_collection(COLLECTION, timeout=CALL_SECONDS)
        return client

    async def _make_collection(self, client: Any) -> None:
        kinds = self._library.kinds
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", kinds.VARCHAR, max_length=128, is_primary=True)
        schema.add_field("base", kinds.VARCHAR, max_length=64, is_partition_key=True)
        schema.add_field("number", kinds.INT64)
        schema.add_field("tokens", kinds.ARRAY, element_type=kinds.INT64, max_capacity=_MOST_TOKENS)
        schema.add_field("words", kinds.SPARSE_FLOAT_VECTOR)
        indexes = client.prepare_index_params()
        indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        indexes.add_index("tokens", index_type="INVERTED")
        indexes.add_index("number", index_type="INVERTED")
        options = {"num_partitions": _PARTITIONS, "consistency_level": "Bounded", "timeout": CALL_SECONDS}
        await client.create_collection(COLLECTION, schema=schema, index_params=indexes, **options)


def read_milvus_address(url: str) -> dict[str, str]:
    """Read `milvus://[user:password@]host[:port][/database]`; `milvuss` is over TLS."""
    parts = urlsplit(url)
    scheme = "https" if parts.scheme == "milvuss" else "http"
    address = {"uri": f"{scheme}://{parts.hostname}:{parts.port or 19530}"}
    given = [unquote(one) for one in (parts.username, parts.password) if one]
    if given:
        address["token"] = ":".join(given)
    if database := parts.path.strip("/"):
        address["db_name"] = database
    return address


def _row(base_id: str, chunk: EngineChunk) -> dict[str, object]:
    fixed, by_length = length_norm(_MEAN_LENGTH)
    norm = fixed + by_length * chunk.length
    hashes = {_hash(token): times for token, times in list(chunk.times.items())[:_MOST_TOKENS]}
    # Words whose vectors share a dimension are told apart where their chunks are scored by text.
    vector = {_dimension(hashed): times / (times + norm) for hashed, times in hashes.items()}
    return {
        "id": f"{base_id}:{chunk.number}",
        "base": base_id,
        "number": chunk.number,
        "tokens": list(hashes),
        # A chunk without a word has a vector with one dimension, which no query asks for: an empty one is refused.
        "words": vector or {0: 1.0},
    }


def _hash(token: str) -> int:
    return int.from_bytes(blake2b(token.encode(), digest_size=8).digest(), "little", signed=True)


def _dimension(hashed: int) -> int:
    """Return the dimension of a token: 1 to 2**31 - 1."""
    return (hashed & 0x7FFFFFFF) or 1


def _are_of(base_ids: Sequence[str]) -> str:
    return f"base in {orjson.dumps(list(base_ids)).decode()}"


def _within(numbers: Range) -> str:
    return f"number >= {numbers.first_number} and number < {numbers.end_number}"


def _are_allowed(allowed: Mapping[str, Sequence[Range]]) -> str:
    return " or ".join(
        f"({_are_of([base_id])} and ({' or '.join(f'({_within(one)})' for one in ranges)}))"
        for base_id, ranges in allowed.items()
        if ranges
    )
