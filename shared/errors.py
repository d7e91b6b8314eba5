"""The one error tree of both services; each transport has one table from class to status.

BallastError
├── InvalidRequest              a value of the request is wrong; `param` names the field
│   ├── UnsupportedValue        the value is well formed, but not supported
│   ├── ContextTooLong          the prompt does not fit the model's context window
│   ├── KeyReused               the Idempotency-Key was used with another request
│   └── PayloadTooLarge
├── Unauthenticated             the key is missing or wrong, or the ticket is forged or expired
├── PermissionDenied            the caller is known, but not allowed to do this
├── NotFound                    the object does not exist, or belongs to somebody else
│   └── UnknownModel
├── Conflict                    the current state of the object forbids the request
│   ├── KeyHeld                 another request with the same Idempotency-Key is being answered
│   ├── TurnRunning             the conversation has a running turn already
│   ├── NoLongerWaiting         a turn that waited has begun, ended, or entered another one
│   └── TurnTaken               another process has taken the turn over
├── MethodNotAllowed
├── TooManyRequests             the caller holds as much as one caller may; waiting helps
├── Unavailable                 a part of the system cannot be used now, but may be later
│   ├── Draining                the process is shutting down
│   ├── EventsLost              events of a turn cannot be read; the turn goes on
│   └── ChatShellUnavailable
│       └── ChatShellSilent     a replica runs the turn and has said nothing for too long
├── DeadlineExceeded            the deadline of the turn has passed
├── CorruptRecord               a stored row cannot be read
├── InternalError               a defect of this software
└── ModelError                  the provider of the model failed
    ├── ModelUnavailable        no connection, or 5xx
    ├── ModelRateLimited        429
    ├── ModelQuotaExhausted     429 that waiting does not cure
    ├── ModelAuthenticationFailed   401, 403: the operator has to correct the credential
    ├── ModelUnknownToProvider  404: the operator has to correct the name or the address
    ├── ModelRequestRejected    400 and other 4xx
    │   ├── ModelContextOverflow
    │   └── ModelContentFiltered
    ├── ModelStalled            no frame for the idle timeout
    ├── ModelStreamCut          the stream broke off before the end of the answer
    └── ModelProtocolViolated   a malformed frame, or an empty answer
"""

from typing import ClassVar

CONTEXT_EXCEEDED = (
    "context_length_exceeded: the input exceeds the context window, this model's maximum context length is"
)
"""How messages about too long a prompt begin: clients look for the code, or for one of the two clauses."""

IMAGE_CODES = (
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_content_policy_violation",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "image_file_not_found",
)
"""What OpenAI's Responses API says of images that it rejects."""


class BallastError(Exception):
    """The root of the tree. `message` may be shown to a caller: it contains no credential, address or protected text.

    `code` is one of OpenAI's error codes, `retryable` says whether the same call may succeed later.
    """

    code: str = "server_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, param: str | None = None, retry_after_seconds: float | None = None):
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_seconds = retry_after_seconds

    @property
    def full_message(self) -> str:
        """The message with the field that it is about at its beginning: most clients show nothing but the message."""
        if self.param is None or self.message.startswith(f"{self.param}: "):
            return self.message
        return f"{self.param}: {self.message}"

    def name(self, param: str | None) -> None:
        """Let it be about a field of another name, for a client that has written the field under that name."""
        if self.param is not None:
            self.message = self.message.removeprefix(f"{self.param}: ")
        self.param = param


class InvalidRequest(BallastError):
    """A value of the request is wrong; `param` names the field."""

    code = "invalid_request"


class UnsupportedValue(InvalidRequest):
    """A value of the request is well formed, but not supported."""

    code = "unsupported_value"


class ContextTooLong(InvalidRequest):
    """The part of the prompt that must be sent does not fit the model's context window."""

    code = "context_length_exceeded"


class KeyReused(InvalidRequest):
    """The Idempotency-Key was used with another request."""

    code = "idempotency_key_reused"


class PayloadTooLarge(InvalidRequest):
    """The body of the request is longer than its limit."""

    code = "payload_too_large"


class Unauthenticated(BallastError):
    """The key is missing or wrong, or the ticket is forged or expired."""

    code = "invalid_api_key"


class PermissionDenied(BallastError):
    """The caller is known, but not allowed to do this."""

    code = "permission_denied"


class NotFound(BallastError):
    """The object does not exist, or belongs to somebody else; the error does not reveal which."""

    code = "not_found"


class UnknownModel(NotFound):
    """No model of that name is offered."""

    code = "model_not_found"


class Conflict(BallastError):
    """The current state of the object forbids the request."""

    code = "conflict"


class KeyHeld(Conflict):
    """Another request with the same Idempotency-Key is being answered."""

    retryable = True


class TurnRunning(Conflict):
    """The conversation has a running turn already."""

    code = "conversation_locked"


class NoLongerWaiting(Conflict):
    """A turn that waited has begun, ended, or entered another one."""


class TurnTaken(Conflict):
    """Another process has taken the turn over: what this one writes of it is refused."""


class MethodNotAllowed(BallastError):
    """The object exists, but never supports this method."""

    code = "method_not_allowed"


class TooManyRequests(BallastError):
    """The caller holds as much as one caller may; waiting helps."""

    code = "rate_limit_exceeded"
    retryable = True


class Unavailable(BallastError):
    """A part of the system cannot be used now, but may be later."""

    retryable = True


class Draining(Unavailable):
    """This process is shutting down and takes no new work."""


class EventsLost(Unavailable):
    """Events of a turn are lost, or cannot be read now; the turn itself goes on."""

    code = "events_lost"


class ChatShellUnavailable(Unavailable):
    """chat_shell cannot be reached, or the connection to it broke."""


class ChatShellSilent(ChatShellUnavailable):
    """A replica of the service that runs models has said nothing for so long that it counts as frozen."""


class DeadlineExceeded(BallastError):
    """The deadline of the turn has passed."""

    retryable = True


class CorruptRecord(BallastError):
    """A stored row cannot be read; the message names its conversation and position."""


class InternalError(BallastError):
    """A defect of this software; the cause is in the log only."""


class ModelError(BallastError):
    """The provider of the model failed; `status` is the HTTP status and `request_id` the id that it gave, if any."""

    status: int | None = None
    request_id: str | None = None


class ModelUnavailable(ModelError):
    """No connection, or a 5xx answer."""

    retryable = True


class ModelRateLimited(ModelError):
    """The provider limits the rate of requests; waiting helps."""

    code = "rate_limit_exceeded"
    retryable = True


class ModelQuotaExhausted(ModelError):
    """The quota at the provider is used up; waiting does not help."""

    code = "insufficient_quota"


class ModelAuthenticationFailed(ModelError):
    """The provider refuses the configured credential."""


class ModelUnknownToProvider(ModelError):
    """The provider does not have the model that is configured."""


class ModelRequestRejected(ModelError):
    """The provider rejects the content of the request; for an image `code` is one of `IMAGE_CODES`."""

    code = "invalid_prompt"


class ModelContextOverflow(ModelRequestRejected):
    """The prompt is longer than the model's context window."""

    code = "context_length_exceeded"


class ModelContentFiltered(ModelRequestRejected):
    """The provider's filter of contents rejects the request."""

    code = "content_filter"


class ModelStalled(ModelError):
    """The provider sent no frame for the idle timeout."""

    retryable = True


class ModelStreamCut(ModelError):
    """The stream broke off before the end of the answer."""

    retryable = True


class ModelProtocolViolated(ModelError):
    """The provider sent a malformed frame, or an empty answer."""

    retryable = True
