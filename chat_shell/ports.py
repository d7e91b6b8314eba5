"""What chat_shell needs from outside: models, knowledge, time, and someone who watches."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol

from chat_shell.domain.documents import FoundDocument
from shared.models.events import FinishReason, ModelCard, Usage
from shared.models.execution import AccessMode, ExecutionRequest, JsonObject, ModelParameters, ToolDefinition
from shared.models.messages import Message, ToolCall
from shared.models.values import Value


class ModelCall(Value):
    """One request to a model, whole: the same value makes the same bytes."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    parameters: ModelParameters
    cache_key: str


class TextFragment(Value):
    """Text of the answer; the frames that one read brought are joined."""

    text: str


class ReasoningFragment(Value):
    """Text of the model's thinking."""

    text: str


class RefusalFragment(Value):
    """Text of a refusal that the provider marks as one."""

    text: str


class ModelAnswerEnd(Value):
    """The last item of every stream that did not fail: complete tool calls, reason and usage."""

    tool_calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    usage: Usage


ModelFragment = TextFragment | ReasoningFragment | RefusalFragment | ModelAnswerEnd


class Model(Protocol):
    """A provider's API. Closing the iterator (`aclosing`) closes the connection to the provider."""

    def stream(self, call: ModelCall, deadline: datetime) -> AsyncIterator[ModelFragment]:
        """Run one model call.

        Raises:
            ModelError: one of its subclasses; each says whether a retry may help.
            DeadlineExceeded: the deadline passed.
        """
        ...


class ModelDirectory(Protocol):
    """The models that the operator has configured."""

    def cards(self) -> tuple[ModelCard, ...]:
        """Return the offered models, in the operator's order; the first is the default."""
        ...

    def card(self, name: str) -> ModelCard:
        """Return one.

        Raises:
            UnknownModel: not offered.
        """
        ...

    def model(self, name: str) -> Model:
        """Return the adapter that reaches it.

        Raises:
            UnknownModel: not offered.
        """
        ...


class KnowledgeChunk(Value):
    """A chunk as the backend hands it out in an unrestricted turn."""

    knowledge_base_id: str
    file_id: str
    filename: str
    heading_path: tuple[str, ...]
    text: str
    score: float


class KnowledgeAnswer(Value):
    """What a search brought; in restricted mode there are no chunks."""

    access_mode: AccessMode
    whole: bool
    chunks: tuple[KnowledgeChunk, ...]


class KnowledgeDocument(Value):
    """A document's listing."""

    knowledge_base_id: str
    file_id: str
    filename: str
    size_bytes: int
    chunk_count: int


class KnowledgePage(Value):
    """A stretch of a document's text; `next_offset` is None at its end. Offsets count characters."""

    file_id: str
    filename: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None


class Claim(Value):
    """For which turn knowledge is asked: its signed ticket, and the request id by which both logs tell of it."""

    ticket: str
    request_id: str


class Knowledge(Protocol):
    """Retrieval through the backend, on a turn's claim; it works the access out again each time.

    Every method raises:
        PermissionDenied: a base that is not in the ticket, or text that this user may not read.
        Unauthenticated: the ticket is forged or expired.
        Unavailable: the backend cannot be reached. Retryable.
    """

    async def search(
        self, claim: Claim, query: str, base_ids: tuple[str, ...], *, limit: int, whole_below_tokens: int
    ) -> KnowledgeAnswer:
        """Search; a small base (at most `whole_below_tokens`) comes whole, in document order."""
        ...

    async def list_documents(self, claim: Claim, base_ids: tuple[str, ...]) -> tuple[KnowledgeDocument, ...]:
        """List the documents, ordered by base and name."""
        ...

    async def read_document(self, claim: Claim, file_id: str, *, offset: int, limit: int) -> KnowledgePage:
        """Read up to `limit` characters of a document's text from `offset`.

        Raises:
            NotFound: no such document in the bases of the ticket.
        """
        ...


class ToolAnswer(Value):
    """What a tool brought: documents, which are numbered and rendered later, or else a text."""

    documents: tuple[FoundDocument, ...] = ()
    text: str = ""
    failed: bool = False


class ToolContext(Value):
    """What a tool may know of the turn: the caller's bases, mode and ticket, and the model."""

    request: ExecutionRequest
    card: ModelCard

    @property
    def claim(self) -> Claim:
        """On which knowledge may be asked for."""
        return Claim(ticket=self.request.knowledge.ticket, request_id=self.request.request_id)


class Tool(Protocol):
    """A tool of our own. It acts with the caller's authority and never beyond the turn's bound bases."""

    @property
    def definition(self) -> ToolDefinition:
        """Return what is offered to the model: a constant."""
        ...

    @property
    def accepts_restricted(self) -> bool:
        """Whether it may be offered in a restricted turn, which it must then treat as one."""
        ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Answer one call; cancelled at its timeout and when the turn is.

        Raises:
            ArgumentsRejected: the arguments do not fit; its message goes to the model.
            BallastError: the call failed; the model is told so in words of ours.
        """
        ...


class Clock(Protocol):
    """Wall time."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        ...


class TurnObserver(Protocol):
    """Told what an operator wants to see; must not raise and must not block."""

    def turn_started(self, request: ExecutionRequest) -> None:
        """A turn begins."""
        ...

    def turn_finished(self, request: ExecutionRequest, outcome: str, usage: Usage) -> None:
        """A turn ended: `outcome` is a finish reason, `cancelled`, or the class of the error."""
        ...

    def tool_answered(self, request: ExecutionRequest, tool: str, answer: ToolAnswer) -> None:
        """A call of one of our tools has its answer, a refusal among them."""
        ...

    def tool_failed(self, request: ExecutionRequest, tool: str, error: BaseException) -> None:
        """A tool raised something that is no BallastError: a defect, to be logged with its traceback."""
        ...
