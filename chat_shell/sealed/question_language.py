"""The language of a question, and which chunks may be shown for it.

A summary in another language than its source is a copy that the gate cannot compare with it. So chunks in another
language than the question's are shown only where the owner of their base allows it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from chat_shell.sealed.protected import ProtectedChunk
from shared.disclosure.languages import Language, language_of

_NAMES = {Language.ENGLISH: "English", Language.CHINESE: "Chinese, in simplified characters"}
_UNKNOWN_NAME = "that of the query"

KEPT_LANGUAGES = 2_048
"""Texts of chunks whose language is remembered, as many as the gate remembers as read: some chunks are found often."""


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """The chunks that the secondary model is shown, and those that only the gate reads.

    `language` is that of the question, and `answer_language` its name for the model.
    """

    language: Language | None
    answer_language: str
    chunks: tuple[ProtectedChunk, ...]
    withheld: tuple[ProtectedChunk, ...]


def select_evidence(
    question: tuple[str, str], chunks: Sequence[ProtectedChunk], translatable_base_ids: Collection[str]
) -> ShownEvidence:
    """Choose the chunks that may be shown.

    Args:
        question: The user's last message, whose language counts, and the query, whose language counts where the message
            has no word.
        chunks: What was found.
        translatable_base_ids: The bases whose owners allow that their text is summarised in another language.
    """
    last_message, query = question
    language = language_of(last_message) or language_of(query)
    is_shown = [
        chunk.knowledge_base_id in translatable_base_ids or _is_in(language, chunk.text.reveal()) for chunk in chunks
    ]
    return ShownEvidence(
        language=language,
        answer_language=_UNKNOWN_NAME if language is None else _NAMES.get(language, _UNKNOWN_NAME),
        chunks=tuple(chunk for chunk, shown in zip(chunks, is_shown, strict=True) if shown),
        withheld=tuple(chunk for chunk, shown in zip(chunks, is_shown, strict=True) if not shown),
    )


@lru_cache(maxsize=KEPT_LANGUAGES)
def language_of_chunk(text: str) -> Language | None:
    """Return the language of a chunk's text, or remember it."""
    return language_of(text)


def _is_in(language: Language | None, text: str) -> bool:
    """Whether a text is in this language; two languages that the gate cannot read are not taken for the same."""
    return language in _NAMES and language_of_chunk(text) is language
