"""What a search's chunks forbid, read once for its first reply and its rewrite."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from chat_shell.sealed.gate.canary import folded_canaries
from chat_shell.sealed.gate.folding import fold
from chat_shell.sealed.gate.identifiers import Identifiers, identifiers
from chat_shell.sealed.gate.overlap import Passages, passages
from chat_shell.sealed.gate.structure import Outline, outline, outlines_of
from chat_shell.sealed.gate.terms import ChunkSource
from chat_shell.sealed.protected import ProtectedChunk
from shared.plain_text.normal_form import split_words
from shared.plain_text.reading import as_read

MAX_USER_CHARACTERS = 20_000
"""The newest of the user's words; what he said before is no longer his."""


@dataclass(frozen=True, slots=True, repr=False)
class GateCase:
    """The chunks and the user's words in the forms that the checks compare; it prints nothing of them."""

    passages: Passages
    identifiers: Identifiers
    outlines: tuple[Outline, ...]
    canaries: frozenset[str]
    own_words: frozenset[str]


def prepare(
    chunks: Sequence[ProtectedChunk],
    user_words: str,
    canaries: Sequence[str],
    siblings: Sequence[ProtectedChunk] = (),
) -> GateCase:
    """Read the chunks of one search.

    Args:
        chunks: All that the secondary model is shown.
        user_words: What the user wrote himself in this conversation, never what a model wrote for him.
        canaries: The tokens planted for this request; those of the documents are in the chunks.
        siblings: Other chunks of the same documents, which the secondary model does not see.
    """
    own = fold(user_words[-MAX_USER_CHARACTERS:])
    sources = [_source(chunk) for chunk in chunks]
    return GateCase(
        passages=passages([text for source in sources for text in _texts(source)], own),
        identifiers=identifiers(sources, user_words[-MAX_USER_CHARACTERS:], map(_source, siblings)),
        outlines=tuple(_outlines(chunks)),
        canaries=folded_canaries((*canaries, *(chunk.canary.reveal() for chunk in chunks))),
        own_words=frozenset(split_words(own)),
    )


def _source(chunk: ProtectedChunk) -> ChunkSource:
    headings = tuple(heading.reveal() for heading in chunk.heading_path)
    return ChunkSource(chunk.document.reveal(), headings, chunk.text.reveal())


def _texts(source: ChunkSource) -> Iterator[str]:
    """Yield, folded, what can be retold of a chunk: its words as read and, where links part them, as written."""
    written, read = fold(source.text), fold(as_read(source.text))
    yield read
    if split_words(read) != split_words(written):
        yield written
    yield fold(" ".join((source.document, *source.headings)))


def _outlines(chunks: Sequence[ProtectedChunk]) -> Iterator[Outline]:
    for chunk in chunks:
        yield from outlines_of(chunk.text.reveal())
    in_order = sorted(chunks, key=_place)
    for _, same in groupby(in_order, key=lambda chunk: _place(chunk)[:2]):
        yield outline(heading.reveal() for chunk in same for heading in chunk.heading_path)
    yield outline(name for name in dict.fromkeys(chunk.document.reveal() for chunk in in_order))


def _place(chunk: ProtectedChunk) -> tuple[str, str, int]:
    return chunk.knowledge_base_id, chunk.document.reveal(), chunk.ordinal
