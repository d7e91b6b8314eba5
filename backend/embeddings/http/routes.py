"""Embeddings in OpenAI's words, made by the operator's embedder."""

import sys
from base64 import b64encode
from collections.abc import AsyncGenerator
from typing import Annotated, Literal

import orjson
from fastapi import Depends
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, BeforeValidator, Field

from backend.embeddings.domain import Vector, vector_numbers
from backend.embeddings.services.embeddings import EmbeddedTexts, Embeddings
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import RequestBody
from backend.identity.http.caller import CallerDep
from shared.models.values import JsonValue

EmbeddingsDep = Annotated[Embeddings, Depends(service_of(Embeddings))]
router = new_router("Embeddings")


def _without_tokens(value: JsonValue) -> JsonValue:
    if isinstance(value, list) and any(isinstance(each, int | list) for each in value):
        raise ValueError("must be a text or a list of texts; lists of tokens are not supported")
    return value


class CreateEmbeddings(RequestBody):
    """Texts of which vectors are wanted; `user` changes nothing."""

    input: Annotated[str | list[str], BeforeValidator(_without_tokens)]
    model: Annotated[str, Field(min_length=1, max_length=256)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1)] | None = None
    user: Annotated[str, Field(max_length=256)] | None = None


class OneEmbedding(BaseModel):
    """A vector of length 1: its numbers, or base64 of them as floats of four bytes in little-endian order."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsage(BaseModel):
    """An estimate of the tokens, because not every embedder counts them."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(BaseModel):
    """The vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[OneEmbedding]
    model: str
    usage: EmbeddingUsage


@router.post(
    "/v1/embeddings",
    summary="Create embeddings",
    response_class=StreamingResponse,
    responses={200: {"model": EmbeddingList, "description": "The vectors, in the order of the texts"}},
)
async def create_embeddings(
    wanted: CreateEmbeddings, embeddings: EmbeddingsDep, caller: CallerDep
) -> StreamingResponse:
    """Return a vector for each text, as the passages of knowledge bases are embedded."""
    texts = [wanted.input] if isinstance(wanted.input, str) else wanted.input
    made = await embeddings.embed(caller, wanted.model, texts, wanted.dimensions)
    pieces = _pieces(made, is_base64=wanted.encoding_format == "base64")
    return StreamingResponse(pieces, media_type="application/json")


async def _pieces(made: EmbeddedTexts, *, is_base64: bool) -> AsyncGenerator[bytes]:
    """Yield the answer vector by vector: half a million numbers in one piece would hold the event loop."""
    yield b'{"object":"list","data":['
    for index, vector in enumerate(made.vectors):
        embedding = _base64(vector) if is_base64 else vector_numbers(vector).tolist()
        shown = orjson.dumps({"object": "embedding", "index": index, "embedding": embedding})
        yield shown if index == 0 else b"," + shown
    usage = {"prompt_tokens": made.tokens, "total_tokens": made.tokens}
    yield b'],"model":' + orjson.dumps(made.model) + b',"usage":' + orjson.dumps(usage) + b"}"


def _base64(vector: Vector) -> str:
    numbers = vector_numbers(vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return b64encode(numbers).decode("ascii")
