"""The one error tree of both services; each transport has one table from class to status.

BallastError
├── InvalidRequest              the caller's words are wrong; `param` names the field
│   ├── UnsupportedValue        well formed, but not something we do
│   └── PayloadTooLarge
├── Unauthenticated             no key, a wrong key, a forged or expired ticket
├── PermissionDenied            known, and not allowed
├── NotFound                    not there, or somebody else's
│   └── UnknownModel
├── Conflict                    true now, false later
│   └── TurnRunning             one running turn a conversation
├── MethodNotAllowed
├── Unavailable                 try again later
│   ├── Draining                shutting down
│   └── ChatShellUnavailable
├── DeadlineExceeded            the turn's time is over
├── CorruptRecord               a stored row that cannot be read; names the place
├── InternalError               a defect of ours
└── ModelError                  the provider of the model failed
    ├── ModelUnavailable        no connection, or 5xx
    ├── ModelRateLimited        429
    ├── ModelQuotaExhausted     429 that waiting does not cure
    ├── ModelAuthenticationFailed   401, 403: our credential, so the operator's concern
    ├── ModelUnknownToProvider  404: name or address is wrong, so the operator's concern
    ├── ModelRequestRejected    400 and its like
    │   └── ModelContextOverflow
    ├── ModelStalled            no frame for the idle timeout
    ├── ModelStreamCut          the stream ended before its end
    └── ModelProtocolViolated   garbage, or an empty answer
"""

from typing import ClassVar


class BallastError(Exception):
    """The root. `message` may be shown to a caller: no credential, address or protected text in it.

    `code` is one of OpenAI's error codes, `retryable` says whether the same call may succeed later.
    """

    code: ClassVar[str] = "server_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, param: str | None = None, retry_after_seconds: float | None = None):
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_seconds = retry_after_seconds


class InvalidRequest(BallastError):
    """The caller's words are wrong; `param` names the field."""

    code = "invalid_request"


class UnsupportedValue(InvalidRequest):
    """A well-formed value that is not supported here."""

    code = "unsupported_value"


class ContextTooLong(InvalidRequest):
    """What may not be left out is longer than the model's window."""

    code = "context_length_exceeded"


class PayloadTooLarge(InvalidRequest):
    """A body over its limit."""

    code = "payload_too_large"


class Unauthenticated(BallastError):
    """No key, a wrong key, a forged or expired ticket."""

    code = "invalid_api_key"


class PermissionDenied(BallastError):
    """The caller is known and may not do this."""

    code = "permission_denied"


class NotFound(BallastError):
    """Not there, or somebody else's: the two are not told apart."""

    code = "not_found"


class UnknownModel(NotFound):
    """No model of that name is offered."""

    code = "model_not_found"


class Conflict(BallastError):
    """The state forbids it now."""

    code = "conflict"


class TurnRunning(Conflict):
    """A turn runs already on this conversation."""

    code = "conversation_locked"


class MethodNotAllowed(BallastError):
    """The object exists, and this is never done to it."""

    code = "method_not_allowed"


class Unavailable(BallastError):
    """A part we depend on is away for now."""

    retryable = True


class Draining(Unavailable):
    """This process is shutting down and takes no new work."""


class ChatShellUnavailable(Unavailable):
    """chat_shell cannot be reached, or broke off."""


class DeadlineExceeded(BallastError):
    """The turn's time is over."""

    retryable = True


class CorruptRecord(BallastError):
    """A stored row cannot be read; the message names its conversation and position."""


class InternalError(BallastError):
    """A defect of ours; the cause is in the log only."""


class ModelError(BallastError):
    """The provider of the model failed."""


class ModelUnavailable(ModelError):
    """No connection, or a 5xx answer."""

    retryable = True


class ModelRateLimited(ModelError):
    """The provider asks us to slow down."""

    code = "rate_limit_exceeded"
    retryable = True


class ModelQuotaExhausted(ModelError):
    """The provider's quota is used up; waiting does not cure it."""

    code = "rate_limit_exceeded"


class ModelAuthenticationFailed(ModelError):
    """The provider refuses our credential."""


class ModelUnknownToProvider(ModelError):
    """We offer the model, and its provider does not have it."""


class ModelRequestRejected(ModelError):
    """The provider refuses the request as such."""

    code = "invalid_prompt"


class ModelContextOverflow(ModelRequestRejected):
    """The prompt is longer than the model's window."""


class ModelStalled(ModelError):
    """No frame came for the idle timeout."""

    retryable = True


class ModelStreamCut(ModelError):
    """The stream ended before the answer did."""

    retryable = True


class ModelProtocolViolated(ModelError):
    """Frames that are no frames, or an answer with nothing in it."""

    retryable = True
