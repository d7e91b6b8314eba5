"""The chain of hashes over what a client has seen of a conversation.

A client that resends its whole history is recognised by it. Every message extends the chain, so that two chains are
equal exactly where a user has seen the same messages in the same order. Ids, annotations and statuses do not count.
What a model said between two messages of others is one message, however it is divided: clients join its texts with a
blank line or with nothing, and trim them. So line breaks do not count in it, nor white space around it.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from backend.conversations.domain.attached_files import UnreadFile
from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.item_bodies import BETWEEN_MESSAGES, CALLS
from backend.conversations.domain.responses import ItemBody, OpenedConversation
from backend.foundation.domain.json_objects import Steps, result_of
from shared.models.messages import AssistantMessage, Content, HistoryMessage, ImagePart, SystemMessage, ToolCall
from shared.models.values import objects_in
from shared.prompts.custom_tools import arguments_of

MAX_BOUNDARIES = 256
"""How many answers of a history are looked up, the newest ones: an edit further back begins a new conversation."""

DIGEST_BYTES = 20
"""160 bits, as of `conversation_cache_key`; a user could at most make chains of their own equal."""

STEP_CHARACTERS = 2**20
"""Characters that are hashed in one step, which takes about 2 ms."""

STEP_MESSAGES = 200
"""Messages that are hashed in one step, which takes about 2 ms."""


TextOfAnswer = Callable[[Sequence[str]], str]
"""What of the texts of one answer goes into a chain."""


class HistoryFingerprint(NamedTuple):
    """A chain, and whether a model's answer ends it: text that a model says behind it would belong to that answer.

    Where that answer is known, `said` is it, and `before` the chain that it follows.
    """

    digest: str
    ends_with_answer: bool
    before: str = ""
    said: tuple[HistoryMessage, ...] = ()


class Boundary(NamedTuple):
    """The chain behind an answer in a history, and how many messages of the history it covers."""

    digest: str
    message_count: int


def root_fingerprint(tenant: str, user_id: str) -> HistoryFingerprint:
    """Return the chain of a user who has seen nothing; no chain of another user equals one that begins with it."""
    return HistoryFingerprint(result_of(_hash_cooperatively("", ("root", tenant, user_id))), ends_with_answer=False)


def restore_fingerprint(digest: str) -> HistoryFingerprint:
    """Return a chain that is stored, which an answer ends."""
    return HistoryFingerprint(digest, ends_with_answer=True)


def extend_cooperatively(
    chain: HistoryFingerprint | None, messages: Sequence[HistoryMessage]
) -> Steps[HistoryFingerprint | None]:
    """Extend a chain by messages; None where what the client has seen is not known.

    That is so where messages of a model follow an answer that is not known: all of them are one.
    """
    for run in _runs(messages):
        is_answer = isinstance(run[0], AssistantMessage)
        if chain is None or (is_answer and chain.ends_with_answer and not chain.said):
            return None
        said = (*chain.said, *run) if is_answer else ()
        before = chain.before if is_answer and chain.said else chain.digest
        digest = yield from _hash_cooperatively(before, _fields(said or run))
        chain = HistoryFingerprint(digest, is_answer, before, said)
    return chain


def extend_chain(chain: HistoryFingerprint | None, messages: Sequence[HistoryMessage]) -> HistoryFingerprint | None:
    """Extend a chain at once; see `extend_cooperatively`."""
    return result_of(extend_cooperatively(chain, messages))


def text_however_divided(texts: Sequence[str]) -> str:
    """Return the same for all divisions of an answer into texts."""
    return "".join(texts).replace("\n", "").replace("\r", "").strip()


def text_with_blank_lines(texts: Sequence[str]) -> str:
    """Return what counts in the chains of the release before, by which its conversations are recognised."""
    return BETWEEN_MESSAGES.join([text for text in texts if text])


def boundaries_cooperatively(
    root: HistoryFingerprint, messages: Sequence[HistoryMessage], text_of: TextOfAnswer = text_however_divided
) -> Steps[tuple[Boundary, ...]]:
    """Return the newest places of a history at which a conversation may have been continued, the oldest first."""
    digest, count, pending = root.digest, 0, 0
    found: list[Boundary] = []
    for run in _runs(messages):
        digest = yield from _hash_cooperatively(digest, _fields(run, text_of))
        count += len(run)
        pending += len(run)
        if isinstance(run[0], AssistantMessage):
            found.append(Boundary(digest, count))
        if pending >= STEP_MESSAGES:
            pending = 0
            yield
    return tuple(found[-MAX_BOUNDARIES:])


def answer_seen(output: Sequence[ItemBody]) -> AssistantMessage | None:
    """Return what a response shows of its answer as one message; None where it shows nothing."""
    texts = [
        "".join([str(part.get("text") or part.get("refusal") or "") for part in objects_in(item["content"])])
        for item in output
        if item["type"] == "message"
    ]
    calls = [
        ToolCall(
            call_id=str(item["call_id"]),
            name=str(item["name"]),
            arguments=str(item["arguments"]) if item["type"] == "function_call" else arguments_of(str(item["input"])),
        )
        for item in output
        if item["type"] in CALLS
    ]
    text = BETWEEN_MESSAGES.join([text for text in texts if text])
    return AssistantMessage(text=text, tool_calls=tuple(calls)) if text or calls else None


def fingerprint_at_end(opened: OpenedConversation, root: HistoryFingerprint) -> HistoryFingerprint | None:
    """Return the chain at the end of a conversation, with the items that were given behind its newest response.

    It is None where anything else stands there: a turn that did not end well, an item that was taken out, or a turn
    of a release that keeps no chains.
    """
    chain = restore_fingerprint(opened.seen.digest) if opened.seen is not None else root
    rest = opened.log[opened.seen.log_end if opened.seen is not None else 0 :]
    return extend_chain(chain, _find_given(rest)) if all(map(_is_given, rest)) else None


def _is_given(entry: Entry) -> bool:
    return entry.is_given and entry.message is not None


def _find_given(entries: Sequence[Entry]) -> list[HistoryMessage]:
    return [entry.message for entry in entries if entry.message is not None]


def _runs(messages: Sequence[HistoryMessage]) -> Iterator[Sequence[HistoryMessage]]:
    """Return each message by itself, but messages of a model that follow each other together."""
    start = 0
    for place, message in enumerate(messages, 1):
        is_answer = isinstance(message, AssistantMessage)
        if is_answer and place < len(messages) and isinstance(messages[place], AssistantMessage):
            continue
        yield messages[start:place]
        start = place


def _fields(run: Sequence[HistoryMessage], text_of: TextOfAnswer = text_however_divided) -> Iterator[str]:
    """Return what counts of a message, or of the messages of one answer."""
    said = [message for message in run if isinstance(message, AssistantMessage)]
    if said:
        yield "assistant"
        yield text_of([message.text for message in said])
        for message in said:
            for call in message.tool_calls:
                yield from (call.call_id, call.name, call.arguments)
    for message in run:
        match message:
            case AssistantMessage():
                continue
            case SystemMessage():
                yield from ("system", message.content)
            case _:
                yield from (message.role, message.call_id if message.role == "tool" else "")
                yield from _content_fields(message.content)


def _content_fields(content: Content) -> Iterator[str]:
    for part in (content,) if isinstance(content, str) else content:
        if isinstance(part, UnreadFile):
            yield from ("file", part.digest, part.filename)
        elif isinstance(part, ImagePart):
            yield from ("image", part.url, part.detail.value)
        else:
            yield from ("text", part if isinstance(part, str) else part.text)


def _hash_cooperatively(before: str, fields: Iterator[str] | tuple[str, ...]) -> Steps[str]:
    """Hash a chain and the next fields, each with its length in characters, so that no two lists hash alike."""
    whole = hashlib.blake2b(before.encode(), digest_size=DIGEST_BYTES)
    for field in fields:
        whole.update(len(field).to_bytes(8))
        for start in range(0, len(field), STEP_CHARACTERS):
            if start:
                yield
            whole.update(field[start : start + STEP_CHARACTERS].encode("utf-8", "surrogatepass"))
    return whole.hexdigest()
