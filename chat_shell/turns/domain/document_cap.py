"""Documents of a tool's result that are too long together: the last are dropped whole, because none is cut in its JSON.

The one that is too long by itself keeps its form: the middle of its content is left out.
"""

import json
from collections.abc import Sequence

from chat_shell.knowledge.domain.documents import render_documents
from chat_shell.tools.domain.tool_answers import FoundDocument
from shared.prompts.tool_results import NOTICE_TOKENS, documents_left_out, within_tokens
from shared.tokens import estimate_tokens

_ATTEMPTS = 4
_LONGEST_NUMBER = 999_999_999


def documents_within(found: Sequence[FoundDocument], limit_tokens: int) -> tuple[tuple[FoundDocument, ...], str]:
    """Return the first documents that have so many tokens together, and a line about the others, "" if all are shown.

    At least one is returned.
    """
    sizes = [_count_rendered_tokens(one) for one in found]
    if sum(sizes) <= limit_tokens:
        return tuple(found), ""
    room = limit_tokens - NOTICE_TOKENS
    kept = 0
    for size in sizes:
        room -= size
        if room < 0:
            break
        kept += 1
    if kept == 0:
        shown = (_shorten(found[0], limit_tokens - NOTICE_TOKENS),)
        return shown, documents_left_out(1, len(found)) if len(found) > 1 else ""
    return tuple(found[:kept]), documents_left_out(kept, len(found))


def _count_rendered_tokens(document: FoundDocument) -> int:
    return estimate_tokens(render_documents(((_LONGEST_NUMBER, document),)))


def _shorten(document: FoundDocument, limit_tokens: int) -> FoundDocument:
    """Leave out the middle of a content; how much of it JSON's escapes take up differs from part to part."""
    frame_tokens = _count_rendered_tokens(document.model_copy(update={"content": ""}))
    room = max(0, limit_tokens - frame_tokens)
    written = estimate_tokens(json.dumps(document.content, ensure_ascii=False))
    content_tokens = room * estimate_tokens(document.content) // max(1, written)
    for _ in range(_ATTEMPTS):
        shorter = document.model_copy(update={"content": within_tokens(document.content, content_tokens)})
        if _count_rendered_tokens(shorter) <= limit_tokens:
            return shorter
        content_tokens = content_tokens * 3 // 4
    return document.model_copy(update={"content": within_tokens(document.content, 0)})
