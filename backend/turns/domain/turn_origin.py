"""The origin of a turn: a new conversation, the end of one, or an earlier response of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.history_fingerprint import (
    HistoryFingerprint,
    fingerprint_at_end,
    restore_fingerprint,
    root_fingerprint,
)
from backend.conversations.domain.model_calls import share_prompt
from backend.conversations.domain.responses import Conversation, Item, OpenedConversation, StoredResponse
from backend.conversations.domain.served_tools import ServedTools
from backend.conversations.domain.turn_input import ParsedInput
from backend.identity.domain import Caller
from backend.knowledge.domain.labels import Labels
from backend.knowledge.domain.tickets import SearchOptions
from backend.openai_api.domain.response_object import ResponseBody, functions_in
from backend.openai_api.domain.turn_request import TurnRequest
from backend.search.domain.filters import Filter
from shared.models.values import objects_in


class Origin(NamedTuple):
    """The state of the conversation before a turn.

    `conversation` is its state so far, its model empty before the first turn. `is_new` says that the turn
    creates it, `log` and `items` being copied then; of an existing one `items` is left empty.
    `next_sequence` is where the turn's items go. `seen` is what the client has seen so far, None where that is not
    known. With `has_unknown_tools` the conversation's tools of tool servers may differ from those of its epoch.
    """

    conversation: Conversation
    is_new: bool
    log: tuple[Entry, ...]
    items: tuple[Item, ...]
    next_sequence: int
    seen: HistoryFingerprint | None
    has_unknown_tools: bool = False


@dataclass(frozen=True)
class TurnStart:
    """Where a turn begins, and what of its request is new there.

    `request` and `read` hold the input without what the origin's log holds already. `waiting` are the calls at the end
    of that log that the input answers. `seen` is what the client will have seen with the input. `is_recognised` says
    that the client did not name the origin: it was found by the history in the input. `labels` name the bases from
    which the text of stored items may come that the input names. `charged_to` is as in `Ticket`.
    """

    origin: Origin
    request: TurnRequest
    read: ParsedInput
    waiting: tuple[str, ...]
    seen: HistoryFingerprint | None
    is_recognised: bool = False
    labels: Labels = ()
    charged_to: str | None = None

    @property
    def before(self) -> Conversation:
        """The conversation whose settings the turn has where its request says nothing of them.

        A client that resends its history does not know of the conversation: what it leaves out it does not want.
        """
        found = self.origin.conversation
        return found.model_copy(update=_NO_SETTINGS) if self.is_recognised else found

    @property
    def needs_log_end(self) -> bool:
        """Whether the input answers calls at the end of the origin's log, or goes on with what stands there."""
        return bool(self.waiting) or (bool(self.origin.log) and self.read.question_at is None)

    @property
    def size(self) -> int:
        """How many items and entries have to be gone through to build its request."""
        items = 1 if isinstance(self.request.input, str) else len(self.request.input)
        return items + len(self.origin.log)


_NO_SETTINGS: Mapping[str, object] = {
    "model": "",
    "instructions": "",
    "functions": (),
    "knowledge_base_ids": (),
    "search": SearchOptions(),
    "preset_use": None,
    "served": ServedTools(),
}
"""The settings of a conversation before its first turn."""


class _Ranking(BaseModel):
    score_threshold: float | None = None


class _FileSearch(BaseModel):
    """The tool that a stored response names its knowledge bases in."""

    vector_store_ids: tuple[str, ...] = ()
    max_num_results: int | None = None
    ranking_options: _Ranking = _Ranking()
    filters: Filter | None = None


def blank_origin(caller: Caller, conversation_id: str, cache_key: str, now: datetime) -> Origin:
    """Build the origin of a turn that begins a conversation."""
    conversation = Conversation(
        id=conversation_id,
        tenant=caller.tenant,
        user_id=caller.user_id,
        created_at=now,
        metadata={},
        log_length=0,
        epoch=0,
        model="",
        instructions="",
        functions=(),
        knowledge_base_ids=(),
        cache_key=cache_key,
        running_response_id=None,
        latest_response_id=None,
    )
    seen = root_fingerprint(caller.tenant, caller.user_id)
    return Origin(conversation=conversation, is_new=True, log=(), items=(), next_sequence=0, seen=seen)


def extend_origin(opened: OpenedConversation) -> Origin:
    """Build the origin of a turn at the end of a conversation."""
    return Origin(
        conversation=opened.conversation,
        is_new=False,
        log=opened.log,
        items=(),
        next_sequence=opened.next_sequence,
        seen=fingerprint_at_end(opened, root_fingerprint(opened.conversation.tenant, opened.conversation.user_id)),
    )


def at_unknown_end(conversation: Conversation) -> Origin:
    """Build the origin of a turn behind one that still runs: nothing of the log can be known."""
    return Origin(conversation=conversation, is_new=False, log=(), items=(), next_sequence=0, seen=None)


def fork_origin(
    conversation: Conversation, response: StoredResponse, log: Sequence[Entry], items: Sequence[Item], to: Conversation
) -> Origin:
    """Build the origin of a turn that branches off after an older response, into the blank conversation `to`.

    The branch begins with the same bytes, keeps the cache key and has the settings of that response, so that
    nothing is reset.
    """
    body, use = response.body, response.preset_use
    file_search = _file_search_in(body)
    branch = to.model_copy(
        update={
            "epoch": log[-1].epoch if log else conversation.epoch,
            "model": use.own.model if use is not None else body["model"],
            "preset_use": use,
            "instructions": use.instructions if use is not None else body["instructions"] or "",
            "functions": functions_in(body),
            "knowledge_base_ids": file_search.vector_store_ids,
            "search": SearchOptions(
                max_results=file_search.max_num_results,
                min_score=file_search.ranking_options.score_threshold,
                filters=file_search.filters,
            ),
            "cache_key": conversation.cache_key,
            # A response does not keep definitions; within an epoch they are those of its conversation's newest turn.
            "served": conversation.served,
            "sent": share_prompt(conversation.sent, log),
            # What others have written in it stays theirs.
            "members": {} if conversation.people.is_shared else None,
        }
    )
    return Origin(
        conversation=branch,
        is_new=True,
        log=tuple(log),
        items=tuple(items),
        next_sequence=response.items_end or 0,
        seen=restore_fingerprint(response.seen) if response.seen is not None else None,
        has_unknown_tools=branch.epoch != conversation.epoch and _may_have_served_tools(conversation, response),
    )


def _may_have_served_tools(conversation: Conversation, response: StoredResponse) -> bool:
    has_own = any(tool["type"] == "mcp" for tool in objects_in(response.body["tools"]))
    return has_own or response.preset_use is not None or conversation.served != ServedTools()


def branch_origin(origin: Origin, items: Sequence[Item], to: Conversation) -> Origin:
    """Build the origin of a turn that begins where another one does, in the blank conversation `to`.

    `items` are those of the conversation before. The branch begins with the same bytes, and keeps the cache key.
    """
    kept: dict[str, object] = {
        "id": to.id,
        "user_id": to.user_id,
        # As behind any branch: what others have written in it stays theirs.
        "members": {} if origin.conversation.people.is_shared else None,
        "created_at": to.created_at,
        "metadata": {},
        "log_length": 0,
        "latest_response_id": None,
    }
    conversation = origin.conversation.model_copy(update=kept)
    return origin._replace(conversation=conversation, is_new=True, items=tuple(items))


def _file_search_in(body: ResponseBody) -> _FileSearch:
    found = [tool for tool in objects_in(body["tools"]) if tool["type"] == "file_search"]
    return _FileSearch.model_validate(found[0]) if found else _FileSearch()
