"""The stored record of a turn: with the log it makes the turn's requests, in any process."""

from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter

from backend.conversations.domain.conversation_log import Entry, EntryKind, newest_epoch_state
from backend.conversations.domain.responses import Conversation, StoredResponse
from backend.knowledge.domain.tickets import Ticket, sign_ticket
from backend.prompt.domain.listed_files import find_stored_files
from shared.models.execution import AccessMode, DynamicBlock, KnowledgeBaseRef, ModelParameters, TurnLimits
from shared.models.values import Instant, Value
from shared.prompts.message_order import BLOCK_SEPARATOR


class PlannedBlock(Value):
    """A block that stands in no log; its text is stored once for the conversation, under its digest.

    Where it stands, `placed_blocks` finds anew each time; the release before reads no block without an `index`.
    """

    index: int
    kind: EntryKind
    digest: str


class ContextPart(Value):
    """A dynamic block in the context message: how many characters of it are the block's."""

    name: str
    length: int


_PARTS = TypeAdapter(tuple[ContextPart, ...])


class StoredRecord(Value):
    """What a turn's requests take neither from the log nor from the rows of its response and its conversation.

    `history_end` is the position in the log at which the messages begin that the first request carries by themselves,
    `input_end` the length of the log with them; what stands behind, the turn has added. `context` is the context
    message where the log has none; with `keeps_context` the log has it. `context_parts` are the blocks at its end.
    `moved` are those of the turn's agent that stand in no log. `charged_to` is as in `Ticket`.
    """

    request_id: str
    parameters: ModelParameters
    time_zone: str
    bases: tuple[KnowledgeBaseRef, ...]
    access_mode: AccessMode
    limits: TurnLimits
    deadline: Instant
    history_end: int
    input_end: int
    context: str
    keeps_context: bool
    with_results: bool
    reminder: str = ""
    charged_to: str | None = None
    moved: tuple[PlannedBlock, ...] = ()
    context_parts: tuple[ContextPart, ...] = ()


_STORED = set(StoredRecord.model_fields)
_STORED_APART: dict[str, bool | set[str]] = {"limits": {"hand_back_tokens"}, "context_parts": True}


class TurnRecord(StoredRecord):
    """All that makes a turn's requests together with the log.

    `response` and `conversation` are as the turn has stored them at its start. `texts` are those of the moved blocks,
    by their digests. `ticket` is the signed one of the turn, which `sign` adds.
    """

    response: StoredResponse
    conversation: Conversation
    texts: dict[str, str]
    ticket: str = ""

    def write(self) -> str:
        """Write what `read_record` reads; another process asks for the model's window itself."""
        return self.model_dump_json(include=_STORED, exclude=_STORED_APART, exclude_defaults=True)

    def write_parts(self) -> str | None:
        """Write where the blocks stand, by itself: the release before reads no record with `context_parts`."""
        return _PARTS.dump_json(self.context_parts).decode() if self.context_parts else None


def read_record(plan: str, context_parts: str | None) -> StoredRecord:
    """Read what `TurnRecord` has written.

    Raises:
        ValueError: another release has written it.
    """
    parts = _PARTS.validate_json(context_parts) if context_parts is not None else ()
    return StoredRecord.model_validate_json(plan).model_copy(update={"context_parts": parts})


def record_of(
    stored: StoredRecord, response: StoredResponse, conversation: Conversation, texts: Mapping[str, str]
) -> TurnRecord:
    """Join what is stored of a turn.

    Raises:
        ValueError: the text of a block is missing.
    """
    missing = [one.digest for one in stored.moved if one.digest not in texts]
    if missing:
        raise ValueError(f"moved: the texts of {len(missing)} blocks are missing")
    return TurnRecord(**vars(stored), response=response, conversation=conversation, texts=dict(texts))


def sign(record: TurnRecord, log: Sequence[Entry], secret: str) -> TurnRecord:
    """Return the record with the ticket of its turn: for its bases, and for the files that the log lists."""
    ticket = Ticket(
        user_id=record.response.user_id,
        tenant=record.response.tenant,
        conversation_id=record.conversation.id,
        turn_id=record.response.id,
        base_ids=tuple(base.id for base in record.bases),
        search=record.conversation.search,
        file_ids=find_stored_files(log) if newest_epoch_state(log).reads_files else (),
        charged_to=record.charged_to,
        expires_at=record.deadline,
    )
    return record.model_copy(update={"ticket": sign_ticket(ticket, secret)})


def context_parts(blocks: Sequence[DynamicBlock]) -> tuple[ContextPart, ...]:
    """Return where blocks stand that a context message ends with."""
    return tuple(ContextPart(name=block.name, length=len(block.text)) for block in blocks)


def split_context(text: str, parts: Sequence[ContextPart]) -> tuple[str, tuple[DynamicBlock, ...]]:
    """Take a context message apart into the metadata of knowledge bases and the dynamic blocks behind it."""
    blocks: list[DynamicBlock] = []
    end = len(text)
    for part in reversed(parts):
        blocks.append(DynamicBlock(name=part.name, text=text[max(0, end - part.length) : end]))
        end = max(0, end - part.length - len(BLOCK_SEPARATOR))
    return text[:end], tuple(reversed(blocks))
