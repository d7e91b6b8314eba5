"""Documents cut as the product cuts them, and chunks as the gate gets them, without a service between."""

from collections.abc import Iterable

from backend.extraction.domain.blocks import Note, Picture
from backend.extraction.domain.chunking import Piece, cut_into_pieces
from backend.extraction.domain.media_types import MARKDOWN
from backend.extraction.formats.chosen import read_blocks
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText

_BASE = "kb_gate"


def pieces_of(markdown: str) -> tuple[Piece, ...]:
    """Cut a document into the pieces that are searched."""
    blocks = read_blocks(markdown.encode(), MARKDOWN)
    return cut_into_pieces([block for block in blocks if not isinstance(block, Note | Picture)])


def sealed_chunk(document: str, title: str, ordinal: int, headings: Iterable[str], text: str) -> ProtectedChunk:
    """Wrap a chunk of a document; it has no canary."""

    def hidden(shown: str) -> ProtectedText:
        return ProtectedText(shown, _BASE, document)

    return ProtectedChunk(
        knowledge_base_id=_BASE,
        chunk_id=f"{document}-{ordinal}",
        ordinal=ordinal,
        document=hidden(title),
        heading_path=tuple(map(hidden, headings)),
        text=hidden(text),
        canary=hidden(""),
    )
