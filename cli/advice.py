"""Advice about errors: one table, in which the kind of the error decides, and where it was met.

Every failure has an advice: a kind that no row names has that of its exit code.
"""

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import NamedTuple

KEY_MEND = "export BALLAST_KEY=… with a key of `ballast keys create`, or one that `make run` prints"
_ADMINISTRATOR = (
    "set BALLAST_KEY to the key of an administrator, or ask one to do this; `make run` keeps its own in"
    " var/demo/backend_admin_key"
)
_ROLE = (
    "ask an owner of the base for another role, `ballast bases list` shows yours; a restricted analyst does not read,"
    " but asks: `ballast ask … --base NAME`"
)
_BEGIN_ANEW = "begin a new conversation, without --after and --continue, or ask about less"
_INSIGHT = "ask what is weak, what is risky or what to do first; text, figures and names stay in the base"


class ExitCode(IntEnum):
    """How a command has ended; docs/cli.md promises these numbers to scripts."""

    DONE = 0
    PARTLY_FAILED = 1
    WRONG_USE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5
    SERVER_FAILED = 6
    INTERRUPTED = 130


class Advice(NamedTuple):
    """What to do about errors of a kind, which is a `type` or `code` of the API, below a path; the first one holds."""

    kind: str
    path: str
    text: str


ADVICE: tuple[Advice, ...] = (
    Advice("authentication_error", "", KEY_MEND),
    Advice("permission_error", "/v1/api_keys", _ADMINISTRATOR),
    Advice("permission_error", "/v1/audit", _ADMINISTRATOR),
    Advice("permission_error", "/v1/knowledge_bases", _ROLE),
    Advice("permission_error", "/v1/agents", "`ballast agents list` shows your role; ask an owner of the agent"),
    Advice("permission_error", "", "set BALLAST_KEY to a key that may do this, or ask who owns it for a role"),
    Advice("model_not_found", "", "name a model that the message lists, or an agent of `ballast agents list`"),
    Advice(
        "not_found_error",
        "/v1/responses",
        "`ballast prompts` shows your last answer, `ballast ask` begins anew without --after",
    ),
    Advice(
        "not_found_error",
        "/v1/conversations",
        "`ballast ask --json` tells the id of a conversation, GET /v1/conversations lists those of this key",
    ),
    Advice("not_found_error", "/v1/api_keys", "`ballast keys list` shows the ids of all keys"),
    Advice("not_found_error", "/v1/agents", "`ballast agents list` shows those that this key may use"),
    Advice(
        "not_found_error", "/v1/knowledge_bases", "`ballast bases list` and `ballast members list` show what is there"
    ),
    Advice("context_length_exceeded", "", _BEGIN_ANEW),
    Advice("payload_too_large", "", "split it into smaller parts"),
    Advice("insufficient_quota", "", "pay the provider, or use another key"),
    Advice("conversation_locked", "", "wait until the running answer has ended, then give the command again"),
    Advice("content_filter", "", _INSIGHT),
    Advice("max_output_tokens", "", '`ballast ask --continue "Go on."` asks for the rest'),
    Advice("cancelled", "", "ask again: somebody has stopped this answer"),
    Advice("ModelUnavailable", "", "start the model's server, or correct CHAT_SHELL_MODEL_BASE_URL"),
    Advice("ModelAuthenticationFailed", "", "give chat_shell a valid CHAT_SHELL_MODEL_API_KEY"),
    Advice(
        "ModelUnknownToProvider", "", "correct CHAT_SHELL_MODEL or CHAT_SHELL_MODEL_BASE_URL, which often ends in /v1"
    ),
    Advice("ModelRateLimited", "", "wait, or ask the provider for a higher limit"),
    Advice("ModelQuotaExhausted", "", "pay the provider, or use another key"),
    Advice(
        "ModelStalled",
        "",
        "see whether its server is overloaded, or wait longer: CHAT_SHELL_MODEL_IDLE_TIMEOUT_SECONDS",
    ),
    Advice("ModelProtocolViolated", "", "see that CHAT_SHELL_MODEL_API is the one that this server speaks"),
    Advice("ModelStreamCut", "", "give the command again: the provider broke off in the middle of its answer"),
    Advice("ModelContextOverflow", "", _BEGIN_ANEW),
    Advice("ModelContentFiltered", "", "ask in other words: the provider's filter of contents refuses these"),
    Advice("ModelRequestRejected", "", "see chat_shell's log: the provider refuses what it is asked"),
    Advice("ChatShellUnavailable", "", "start chat_shell, or correct BACKEND_CHAT_SHELL_URL"),
    Advice(
        "rate_limit_error", "", "wait a minute, then give the command again; docs/api.md#limits says who sets limits"
    ),
)

BY_EXIT_CODE: Mapping[ExitCode, str] = {
    ExitCode.PARTLY_FAILED: "mend what is named above, then give the same command again",
    ExitCode.WRONG_USE: "correct what the message names; --help behind the command shows what is right",
    ExitCode.UNREACHABLE: "set BALLAST_URL to the backend's address, and see that nothing stands in the way",
    ExitCode.NOT_ALLOWED: "set BALLAST_KEY to a key that may do this",
    ExitCode.NOT_FOUND: "the command's `list` shows what is there for this key",
    ExitCode.SERVER_FAILED: "give the command again later",
}
"""What to do where the kind of an error says nothing."""

LOOKED_AT_BY_DOCTOR = (ExitCode.UNREACHABLE, ExitCode.SERVER_FAILED)
LOOK_CLOSER = "`ballast doctor` says what is broken"
"""Added where a command ends so, and part of no advice: the doctor gives the same advice, and is no way to itself."""


def advice_on(kinds: Collection[str], path: str = "") -> str | None:
    """Return what to do about an error of these kinds below a path, where a row names one of them."""
    return next((row.text for row in ADVICE if row.kind in kinds and path.startswith(row.path)), None)


def advice_to_analyst(base: str) -> str:
    """Say to a restricted analyst what they may ask of a base: its answers do not tell why they are what they are."""
    return f'You are a restricted analyst of "{base}": {_INSIGHT}.'
