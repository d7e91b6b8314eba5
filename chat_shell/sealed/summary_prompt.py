"""The request to the secondary model: with protected text for the model, and without it for the log."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from chat_shell.sealed.gate.codebook import EXTENSIBLE, Codebook, list_codes
from chat_shell.sealed.gate.typed import describe_form
from chat_shell.sealed.protected import ProtectedChunk
from shared.models.safe_summary import GateCode
from shared.models.values import JsonObject
from shared.prompts.safe_summary import (
    REWRITE_PROMPT,
    SAFE_SUMMARY_PROMPT,
    chunk_text,
    query_and_evidence,
    rewrite_request,
)
from shared.prompts.typed_findings import RETRY_PROMPT, build_findings_prompt

_SHOWN_MARKER = "marker"
"""Replaces, in the log, the random token that separates evidence from instructions."""

_TOKEN_ALPHABET = "bcdfghjklmpqrvwx"  # noqa: S105 - an alphabet
"""Consonants only, so that no word of a language looks like a token."""

_TOKEN_LETTERS = 20
"""80 random bits."""

MAX_REPLY_BYTES_SHOWN = 8_192
"""So much of a blocked reply is shown again for its rewrite; a reply of the agreed form has less."""

MAX_PHRASES_SHOWN, MAX_PHRASE_CHARACTERS = 40, 100
"""So many of the phrases that may not leave are named, and so much of each."""

Messages = tuple[Mapping[str, str], ...]


def new_token() -> str:
    """Create a random word of lower-case letters that no text contains by chance."""
    return "".join(secrets.choice(_TOKEN_ALPHABET) for _ in range(_TOKEN_LETTERS))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A blocked reply that is to be written anew: the checks that it failed, and its phrases that may not leave."""

    reply: bytes = field(repr=False)
    codes: tuple[GateCode, ...]
    phrases: tuple[str, ...] = field(default=(), repr=False)

    def reply_for_model(self) -> str:
        """Return the beginning of the reply, as the model said it."""
        return self.reply[:MAX_REPLY_BYTES_SHOWN].decode("utf-8", errors="ignore")

    def phrases_for_model(self) -> str:
        """Return the phrases, one a line."""
        lines = (" ".join(phrase.split())[:MAX_PHRASE_CHARACTERS] for phrase in self.phrases[:MAX_PHRASES_SHOWN])
        return "\n".join(filter(None, lines))

    def reply_for_operators(self) -> str:
        """Return a note with the size of the reply."""
        return f"[blocked reply, {len(self.reply)} bytes]"

    def phrases_for_operators(self) -> str:
        """Return a note with the number of phrases; empty where there is none."""
        return f"[{len(self.phrases)} phrases]" if self.phrases else ""


@dataclass(frozen=True, slots=True)
class Instructions:
    """The constant first message, a named block beside query and evidence, and the request for a rewrite.

    `schema` is the JSON schema that the reply is to have, where the model can be held to one.
    """

    system: str
    block: tuple[str, str]
    rewrite: str
    schema: JsonObject | None = None


def write_prose(answer_language: str) -> Instructions:
    """Return the instructions for a summary in this language."""
    return Instructions(SAFE_SUMMARY_PROMPT, ("language", answer_language), REWRITE_PROMPT)


def choose_codes(book: Codebook, areas: Sequence[str]) -> Instructions:
    """Return the instructions for findings about these areas, by codes alone."""
    supports, severities = (", ".join(book.lists[name]) for name in ("supports", "severities"))
    system = build_findings_prompt(supports, severities, list_codes(book, EXTENSIBLE))
    return Instructions(system, ("areas", "\n".join(areas)), RETRY_PROMPT, describe_form(book, areas))


class SummaryPrompt:
    """The prompt of one search; `new_token` makes its markers and its canaries.

    The marker of a rewrite is another one, which the model cannot have put into the reply that it is about.
    """

    def __init__(
        self, query: str, instructions: Instructions, chunks: Sequence[ProtectedChunk], new_token: Callable[[], str]
    ):
        self._query = query
        self._instructions = instructions
        self._chunks = tuple(chunks)
        self._marker = new_token()
        self._ends = tuple((new_token(), new_token()) for _ in self._chunks)
        self._rewrite_marker = new_token()

    @property
    def schema(self) -> JsonObject | None:
        """Return the JSON schema of a first reply, if it has one."""
        return self._instructions.schema

    def canaries(self) -> tuple[str, ...]:
        """Return every token that no reply may hold: two for each chunk, and those stored with the documents."""
        stored = dict.fromkeys(chunk.canary.reveal() for chunk in self._chunks)
        return (*(token for pair in self._ends for token in pair), *filter(None, stored))

    def for_model(self, rewrite: Rewrite | None = None) -> Messages:
        """Return the messages as they are sent, for a first reply or for its rewrite."""
        asked = self._build_messages(tuple(map(self._reveal, self._chunks, self._ends)), self._marker)
        if rewrite is None:
            return asked
        request = self._request(rewrite, rewrite.phrases_for_model(), self._rewrite_marker)
        return (*asked, *_again(rewrite.reply_for_model(), request))

    def for_operators(self, rewrite: Rewrite | None = None) -> Messages:
        """Return the same messages with notes in place of each chunk, of the blocked reply and of its phrases."""
        asked = self._build_messages(tuple(map(_note, self._chunks)), _SHOWN_MARKER)
        if rewrite is None:
            return asked
        request = self._request(rewrite, rewrite.phrases_for_operators(), _SHOWN_MARKER)
        return (*asked, *_again(rewrite.reply_for_operators(), request))

    @staticmethod
    def _reveal(chunk: ProtectedChunk, ends: tuple[str, str]) -> str:
        headings = (heading.reveal() for heading in chunk.heading_path)
        return chunk_text((*ends, chunk.canary.reveal()), chunk.document.reveal(), headings, chunk.text.reveal())

    def _request(self, rewrite: Rewrite, phrases: str, marker: str) -> str:
        return rewrite_request(self._instructions.rewrite, rewrite.codes, phrases, marker)

    def _build_messages(self, chunks: Sequence[str], marker: str) -> Messages:
        return (
            {"role": "system", "content": self._instructions.system},
            {"role": "user", "content": query_and_evidence(self._query, self._instructions.block, chunks, marker)},
        )


def _again(reply: str, request: str) -> Messages:
    """Return the turn of the model and the request for another; providers refuse a turn without text."""
    said = ({"role": "assistant", "content": reply},) if reply.strip() else ()
    return (*said, {"role": "user", "content": request})


def _note(chunk: ProtectedChunk) -> str:
    return f"[protected {chunk.knowledge_base_id}, {len(chunk.text.reveal())} chars]"
