"""Stored files of a conversation that are not shown whole, or no longer: they are read by a tool."""

from collections.abc import Sequence

from backend.conversations.domain.attached_files import FileMessage
from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochState
from backend.conversations.domain.turn_input import ParsedInput
from shared.models.messages import Content, UserMessage
from shared.prompts.attached_files import is_unshown, read_stored_file_id, render_left_out

MAX_LISTED = 100
"""The most files of a conversation that a turn lists or reads, the newest ones."""


def has_unshown(read: ParsedInput) -> bool:
    """Return whether the input has a stored file whose text is not shown."""
    given = [message.content for message in read.history if isinstance(message, FileMessage)]
    return any(is_unshown(text) for text in (*given, *read.files) if isinstance(text, str))


def find_stored_files(log: Sequence[Entry]) -> tuple[str, ...]:
    """Return the ids of the stored files that a conversation names, the newest ones, each once."""
    found = dict.fromkeys(filter(None, (read_stored_file_id(text) for text in reversed(_blocks(log)))))
    return tuple(reversed(list(found)[:MAX_LISTED]))


def find_left_out(log: Sequence[Entry], reset: EpochState) -> tuple[str, ...]:
    """Return what stands for the stored files that requests of an epoch leave out, and that nothing lists yet.

    Files of void turns are none of them: they did not end well, or their messages were taken out. Neither are those of
    turns from which what users gave is withheld.
    """
    begins_at = reset.begins_at
    if begins_at == 0:
        return ()
    void_turns = {entry.turn_id for entry in log if entry.kind is EntryKind.VOID}
    hidden = void_turns.union(reset.withheld if reset.withholds_users else ())
    cut = [entry for entry in log if entry.position < begins_at and entry.turn_id not in hidden]
    kept = frozenset(find_stored_files([entry for entry in log if entry.position >= begins_at]))
    found: dict[str, str] = {}
    for text in reversed(_blocks(cut)):
        file_id, block = read_stored_file_id(text), render_left_out(text)
        if file_id is not None and block is not None and file_id not in kept:
            found.setdefault(file_id, block)
    return tuple(reversed(list(found.values())[:MAX_LISTED]))


def _blocks(log: Sequence[Entry]) -> list[str]:
    messages = [entry.message for entry in log if entry.kind is EntryKind.FILE]
    contents: list[Content] = [message.content for message in messages if isinstance(message, UserMessage)]
    return [content for content in contents if isinstance(content, str)]
