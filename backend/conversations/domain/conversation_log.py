"""The append-only log of a conversation: the messages that were sent to models, and their answers."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import groupby, pairwise

from backend.conversations.domain.attached_files import FileMessage
from backend.conversations.domain.placed_blocks import ANCHORED, CLASSIC, AgentRef, BlockMark, Placement
from backend.knowledge.domain.context_texts import BaseText
from backend.knowledge.domain.labels import Labels
from shared.errors import CorruptRecord
from shared.ids import IdPrefix
from shared.models.execution import AccessMode, DynamicBlock
from shared.models.messages import AssistantMessage, HistoryMessage, SystemMessage, ToolMessage, UserMessage
from shared.models.values import Value
from shared.prompts.authors import author_of, words_of_user
from shared.prompts.knowledge_base import TEMPLATE_VERSION
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from shared.prompts.skills import READ_SKILL
from shared.prompts.summary import is_left_out_mark

FIRST_WITH_SKILLS = 2
"""The first version of the fixed texts under which `classic` keeps texts of skills; earlier epochs have elided them."""

WITHHELD = "[This text came from knowledge that may no longer be read here, and was taken out.]"

MAX_USER_CHARACTERS = 20_000
"""How much of the user's newest text counts as their own; more would make each turn of a long conversation slower."""


PART_MARK = "."
"""Stands between the id of a turn and the number of a part of it: no id holds one."""


def part_of(turn_id: str, number: int) -> str:
    """Return the id of a part of a turn, which can become void by itself; a part of a part is one of the turn."""
    return f"{whole_turn_of(turn_id)}{PART_MARK}{number}"


def whole_turn_of(turn_id: str) -> str:
    """Return the id of the turn that a part belongs to, which may be all of it."""
    return turn_id.partition(PART_MARK)[0]


class EntryKind(StrEnum):
    """The kind of an entry."""

    USER = "user"
    DYNAMIC_CONTEXT = "dynamic_context"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"
    SYSTEM = "system"
    NOTICE = "notice"
    CUSTOM_INSTRUCTIONS = "custom_instructions"
    PROJECT_FILES = "project_files"
    FILE = "file"
    REMINDER = "reminder"
    SUMMARY = "summary"
    VOID = "void"


class EpochReason(StrEnum):
    """Why an epoch starts; within an epoch, no byte that was sent to a model changes."""

    NEW_CONVERSATION = "new_conversation"
    MODEL_CHANGED = "model_changed"
    TOOLS_CHANGED = "tools_changed"
    INSTRUCTIONS_CHANGED = "instructions_changed"
    TEMPLATE_VERSION = "template_version"
    ACCESS_CHANGED = "access_changed"
    COMPACTION = "compaction"
    HISTORY_EDITED = "history_edited"


class EpochState(Value):
    """The complete state with which an epoch begins, independent of the epoch before.

    Entries below position `begins_at` are no longer sent; for context messages the limit is `says_from` instead, for
    the statements of an agent's blocks `blocks_from`, and what earlier ones stated is stated again. In the turns of
    `withheld`, the texts of models and tools are replaced by notices, with `withholds_users` those of users, too: in a
    shared conversation they may be somebody else's. `access_mode` is the strictest mode of the bases in scope,
    `template_version` the version of the fixed texts; a change of either starts a new epoch. `opening`,
    `opening_of` and `placement` are those of `PromptForm`. `reads_files` says that the tool is offered which reads
    files that are not shown whole.

    `summary_at` is the position of the summary of what is left out, which requests begin with. The results of tools
    below position `elides_below` are replaced by a fixed sentence.
    """

    reason: EpochReason
    begins_at: int = 0
    says_from: int = 0
    withheld: tuple[str, ...] = ()
    access_mode: AccessMode = AccessMode.FULL
    template_version: int = TEMPLATE_VERSION
    blocks_from: int = 0
    reads_files: bool = False
    withholds_users: bool = False
    opening: str = ""
    opening_of: str = ""
    placement: Placement = ANCHORED
    summary_at: int | None = None
    elides_below: int = 0

    @property
    def keeps_skills(self) -> bool:
        """Whether the texts of skills stay where the placement `classic` elides results."""
        return self.template_version >= FIRST_WITH_SKILLS


class ContextState(Value):
    """The context that the messages of an epoch have stated so far: bases sorted by name and id, blocks by name.

    A base that was only listed as truncated is included: it is listed again when it changes, not in every turn.
    """

    bases: tuple[BaseText, ...]
    blocks: tuple[DynamicBlock, ...]


class Entry(Value):
    """One row of the log. The positions of a conversation are 0, 1, 2 … without gaps.

    `message` is exactly what was sent to the model (with its date suffix) or what the model answered. A void entry has
    no message; it makes later requests skip the turn `turn_id`. `label` names the bases from which text of the turn may
    come; it is set on the entries with which the turn began. `reset` is set on the first entry of an epoch, `context`
    on each entry of kind dynamic_context: it is the whole context that has been stated up to this entry. `block` is set
    on the statements of an agent's instructions and project files. `summarised` names, of a summary, the agents whose
    words the model that wrote it was shown, and of a reminder the agent whose words it may hold.
    """

    position: int
    epoch: int
    turn_id: str
    kind: EntryKind
    message: HistoryMessage | None
    created_at: datetime
    label: Labels = ()
    reset: EpochState | None = None
    context: ContextState | None = None
    block: BlockMark | None = None
    summarised: tuple[AgentRef, ...] = ()

    @property
    def agents(self) -> frozenset[AgentRef]:
        """The agents whose words its message may hold; a line that says that they no longer apply holds none."""
        stated = self.block.agent if self.block is not None and self.block.digest else None
        return frozenset(self.summarised) if stated is None else frozenset([stated])

    @property
    def is_given(self) -> bool:
        """Whether a caller added it to the conversation without running a turn."""
        return not self.turn_id.startswith(f"{IdPrefix.RESPONSE}_")


def kind_of(message: HistoryMessage) -> EntryKind:
    """Return the kind of the entry for a message that a client gave, or that a turn added."""
    return _KINDS[type(message)]


_KINDS: Mapping[type[HistoryMessage], EntryKind] = {
    UserMessage: EntryKind.USER,
    FileMessage: EntryKind.FILE,
    AssistantMessage: EntryKind.ASSISTANT,
    ToolMessage: EntryKind.TOOL_RESULT,
    SystemMessage: EntryKind.SYSTEM,
}


def empty_message(message: HistoryMessage | None, *, with_users: bool = False) -> HistoryMessage | None:
    """Replace the text of a model or a tool by a notice, those of users too if asked; calls and results stay paired."""
    match message:
        case ToolMessage():
            return ToolMessage(call_id=message.call_id, content=WITHHELD)
        case AssistantMessage():
            calls = tuple(call.model_copy(update={"arguments": "{}"}) for call in message.tool_calls)
            return AssistantMessage(text=WITHHELD if message.text else "", tool_calls=calls)
        case UserMessage() if with_users or is_left_out_mark(message.content):
            return UserMessage(content=WITHHELD)
        case _:
            return message


def check_complete(conversation_id: str, entries: Sequence[Entry], length: int) -> None:
    """Refuse a log in which something is missing: the model would silently get another prompt.

    Raises:
        CorruptRecord: an entry is missing.
    """
    broken = find_break(entries, length)
    if broken is not None:
        raise CorruptRecord(f"The log entry at position {broken} of conversation {conversation_id} is missing.")


def find_break(entries: Sequence[Entry], length: int) -> int | None:
    """Return the first position that is missing in a log of this length, or where an epoch begins without a reset."""
    if len(entries) != length:
        return next((place for place, entry in enumerate(entries) if entry.position != place), len(entries))
    epochs = pairwise(entries)
    return next(
        (later.position for before, later in epochs if later.epoch != before.epoch and later.reset is None), None
    )


NO_EPOCH_STATE = EpochState(reason=EpochReason.NEW_CONVERSATION, template_version=1)


def newest_epoch_state(entries: Sequence[Entry]) -> EpochState:
    """Return the reset of the newest epoch in a log."""
    return next((entry.reset for entry in reversed(entries) if entry.reset is not None), NO_EPOCH_STATE)


def find_announced_cut(entries: Sequence[Entry]) -> int:
    """Return where requests of the newest epoch begin, ignoring epochs of void turns, whose notices are not sent."""
    void_turns = _void_turns(entries)
    return newest_epoch_state([entry for entry in entries if entry.turn_id not in void_turns]).begins_at


def find_stated_context(entries: Sequence[Entry], reset: EpochState) -> ContextState | None:
    """Return the whole context that the messages of an epoch have stated; None when there are none."""
    says_from = reset.says_from
    said = [entry for entry in entries if entry.context is not None and entry.position >= says_from]
    void_turns = _void_turns(entries) if said else frozenset[str]()
    return next((entry.context for entry in reversed(said) if entry.turn_id not in void_turns), None)


def find_stated_modes(entries: Sequence[Entry], reset: EpochState) -> frozenset[tuple[str, AccessMode]]:
    """Return each base with each mode in which context messages of an epoch have described it."""
    says_from = reset.says_from
    states = [entry.context for entry in entries if entry.context is not None and entry.position >= says_from]
    return frozenset([(base.id, base.mode) for state in states for base in state.bases])


def find_standing_blocks(entries: Sequence[Entry], reset: EpochState) -> frozenset[int]:
    """Return the positions of the statements of an agent's blocks that a request of an epoch contains.

    Those before the part of the log that is left out stay, without what had been superseded there: what a provider has
    cached of them is read again, and a conversation that is cut keeps its instructions.
    """
    stated = [entry for entry in entries if entry.block is not None and entry.position >= reset.blocks_from]
    void_turns = _void_turns(entries) if stated else frozenset[str]()
    valid = [entry for entry in stated if entry.turn_id not in void_turns]
    newest_cut = {entry.kind: entry.position for entry in valid if entry.position < reset.begins_at}
    behind = [entry.position for entry in valid if entry.position >= reset.begins_at]
    return frozenset([*newest_cut.values(), *behind])


def select_sent(entries: Sequence[Entry], reset: EpochState) -> tuple[Entry, ...]:
    """Return the entries of the log that a request of an epoch contains, in order, without void turns.

    The summary of what is left out comes first; a notice that something is left out is not sent beside it.
    Under the placement `classic`, the results of tools before the newest turn with a message of the user are elided,
    without the texts of skills, which the model goes on to follow.
    """
    void_turns, withheld = _void_turns(entries), frozenset(reset.withheld)
    begins_at, standing = reset.begins_at, find_standing_blocks(entries, reset)
    begin_at = {EntryKind.DYNAMIC_CONTEXT: reset.says_from, EntryKind.REMINDER: max(begins_at, reset.blocks_from)}
    never_here = (EntryKind.SUMMARY,) if reset.summary_at is None else (EntryKind.SUMMARY, EntryKind.NOTICE)
    sent = [
        _withhold(entry, reset) if entry.turn_id in withheld else entry
        for entry in entries
        if entry.message is not None
        and (entry.position >= begin_at.get(entry.kind, begins_at) or entry.position in standing)
        and (entry.block is None or entry.position in standing)
        and entry.turn_id not in void_turns
        and entry.kind not in never_here
    ]
    below = reset.elides_below
    ordered = [_elide(entry) if entry.position < below else entry for entry in _in_call_order(sent)]
    shown = _elide_before_newest(ordered, reset) if reset.placement == CLASSIC else ordered
    return (*summary_of(entries, reset), *shown)


def select_sent_before(sent: Sequence[Entry], position: int) -> tuple[Entry, ...]:
    """Return of the entries of a request those below a position, and the summary that it begins with."""
    return tuple(entry for entry in sent if entry.position < position or entry.kind is EntryKind.SUMMARY)


def summary_of(entries: Sequence[Entry], reset: EpochState) -> tuple[Entry, ...]:
    """Return the summary that requests of an epoch begin with; none where nothing was summarised, or it lies beyond."""
    at = reset.summary_at
    if at is None or not entries:
        return ()
    place = at - entries[0].position
    found = entries[place] if 0 <= place < len(entries) else None
    if found is None or found.kind is not EntryKind.SUMMARY:
        return ()
    return (_withhold(found, reset) if found.turn_id in reset.withheld else found,)


def history(entries: Sequence[Entry]) -> tuple[HistoryMessage, ...]:
    """Return the messages of the log that a request of its newest epoch contains."""
    return messages_of(select_sent(entries, newest_epoch_state(entries)))


def messages_of(entries: Iterable[Entry]) -> tuple[HistoryMessage, ...]:
    """Return the messages of entries."""
    return tuple(entry.message for entry in entries if entry.message is not None)


def user_words(entries: Iterable[Entry], user_id: str) -> str:
    """Return the newest of what the user wrote, in order, without date suffixes, files, and context.

    Where messages name their authors, what others wrote, and what nobody is named for, is not their own.
    """
    said = [entry.message for entry in entries if entry.kind is EntryKind.USER]
    contents = [
        message.content
        for message in said
        if isinstance(message, UserMessage) and not is_left_out_mark(message.content)
    ]
    authors = [author_of(content) for content in contents]
    if any(author is not None for author in authors):
        contents = [content for content, author in zip(contents, authors, strict=True) if author == user_id]
    return "\n".join(text for content in contents for text in words_of_user(content))[-MAX_USER_CHARACTERS:]


def _elide_before_newest(sent: list[Entry], reset: EpochState) -> list[Entry]:
    """Elide the results before the newest turn of the user, which goes on where it continues from results."""
    user = EntryKind.USER
    newest = next((whole_turn_of(entry.turn_id) for entry in reversed(sent) if entry.kind is user), None)
    start = next((place for place, entry in enumerate(sent) if whole_turn_of(entry.turn_id) == newest), 0)
    stay = _skill_texts(sent[:start]) if reset.keeps_skills else frozenset[int]()
    return [*(entry if entry.position in stay else _elide(entry) for entry in sent[:start]), *sent[start:]]


def _skill_texts(sent: Sequence[Entry]) -> frozenset[int]:
    """Return the positions of the results that are texts of skills; a result stands behind the message of its call."""
    found, read = set[int](), frozenset[str]()
    for entry in sent:
        message = entry.message
        if isinstance(message, AssistantMessage):
            read = skill_calls(message)
        elif isinstance(message, ToolMessage) and message.call_id in read:
            found.add(entry.position)
    return frozenset(found)


def skill_calls(message: AssistantMessage) -> frozenset[str]:
    """Return the ids of the calls by which a message reads skills."""
    return frozenset(call.call_id for call in message.tool_calls if call.name == READ_SKILL)


def _elide(entry: Entry) -> Entry:
    message = entry.message
    if not isinstance(message, ToolMessage):
        return entry
    return entry.model_copy(update={"message": message.model_copy(update={"content": TOOL_RESULT_ELIDED})})


def _void_turns(entries: Sequence[Entry]) -> frozenset[str]:
    # Looking up a member of an enumeration takes three times as long as a comparison, so it is done once.
    void = EntryKind.VOID
    return frozenset([entry.turn_id for entry in entries if entry.kind is void])


def _withhold(entry: Entry, reset: EpochState) -> Entry:
    if entry.kind is EntryKind.SUMMARY:
        return entry.model_copy(update={"message": UserMessage(content=WITHHELD)})
    return entry.model_copy(update={"message": empty_message(entry.message, with_users=reset.withholds_users)})


def _in_call_order(entries: Sequence[Entry]) -> list[Entry]:
    """Sort the tool results after each assistant message in the order of its calls."""
    ordered = list(entries)
    results = [place for place, entry in enumerate(entries) if type(entry.message) is ToolMessage]
    # For consecutive results, the difference of place and count is constant.
    for _, group in groupby(enumerate(results), lambda result: result[1] - result[0]):
        run = [place for _, place in group]
        if len(run) > 1 and run[0] > 0:
            behind = _call_places(entries[run[0] - 1].message)
            ordered[run[0] : run[-1] + 1] = sorted(entries[run[0] : run[-1] + 1], key=partial(_place, behind))
    return ordered


def _call_places(message: HistoryMessage | None) -> Mapping[str, int]:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return {call.call_id: place for place, call in enumerate(calls)}


def _place(places: Mapping[str, int], entry: Entry) -> int:
    """Return the sort key of a result; one that answers none of the calls is placed after the others."""
    message = entry.message
    return places.get(message.call_id, len(places)) if isinstance(message, ToolMessage) else 0


def find_pending_calls(messages: Sequence[HistoryMessage]) -> tuple[str, ...]:
    """Return the ids of tool calls that no result has answered, in call order."""
    waiting: dict[str, None] = {}
    for message in messages:
        if message.role == "assistant":
            waiting.update({call.call_id: None for call in message.tool_calls})
        elif message.role == "tool":
            waiting.pop(message.call_id, None)
    return tuple(waiting)
