"""The request to the secondary model: with protected text for the model, and without it for the log."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence

from chat_shell.sealed.protected import ProtectedChunk
from shared.models.safe_summary import GateCode
from shared.prompts.safe_summary import REWRITE_PROMPT, SAFE_SUMMARY_PROMPT, chunk_text, query_and_evidence

_SHOWN_MARKER = "marker"
"""Replaces, in the log, the random token that separates evidence from instructions."""

_TOKEN_ALPHABET = "bcdfghjklmpqrvwx"  # noqa: S105 - an alphabet
"""Consonants only, so that no word of a language looks like a token."""

_TOKEN_LETTERS = 20
"""80 random bits."""

Messages = tuple[Mapping[str, str], ...]


def new_token() -> str:
    """Create a random word of lower-case letters that no text contains by chance."""
    return "".join(secrets.choice(_TOKEN_ALPHABET) for _ in range(_TOKEN_LETTERS))


class SummaryPrompt:
    """The prompt of one search; `new_token` makes its marker and its canaries."""

    def __init__(self, query: str, chunks: Sequence[ProtectedChunk], new_token: Callable[[], str]):
        self._query = query
        self._chunks = tuple(chunks)
        self._marker = new_token()
        self._ends = tuple((new_token(), new_token()) for _ in self._chunks)

    def canaries(self) -> tuple[str, ...]:
        """Return every token that no reply may hold: two for each chunk, and those stored with the documents."""
        stored = dict.fromkeys(chunk.canary.reveal() for chunk in self._chunks)
        return (*(token for pair in self._ends for token in pair), *filter(None, stored))

    def for_model(self, failed: Iterable[GateCode] = ()) -> Messages:
        """Return the messages as they are sent; `failed` are the codes of a first reply that is to be rewritten."""
        return self._messages(tuple(map(self._revealed, self._chunks, self._ends)), self._marker, failed)

    def for_operators(self, failed: Iterable[GateCode] = ()) -> Messages:
        """Return the same messages with a note in place of each chunk."""
        return self._messages(tuple(map(_note, self._chunks)), _SHOWN_MARKER, failed)

    @staticmethod
    def _revealed(chunk: ProtectedChunk, ends: tuple[str, str]) -> str:
        headings = (heading.reveal() for heading in chunk.heading_path)
        return chunk_text((*ends, chunk.canary.reveal()), chunk.document.reveal(), headings, chunk.text.reveal())

    def _messages(self, chunks: Sequence[str], marker: str, failed: Iterable[GateCode]) -> Messages:
        codes = ", ".join(failed)
        return (
            {"role": "system", "content": SAFE_SUMMARY_PROMPT},
            {"role": "user", "content": query_and_evidence(self._query, chunks, marker)},
            *([{"role": "user", "content": REWRITE_PROMPT.format(codes=codes)}] if codes else []),
        )


def _note(chunk: ProtectedChunk) -> str:
    return f"[protected {chunk.knowledge_base_id}, {len(chunk.text.reveal())} chars]"
