"""The gate's verdicts on a reply, and the interface of the gate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from chat_shell.sealed.codes import GateCode, PolicyRefusal
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.released import Released
from shared.disclosure.languages import Language


@dataclass(frozen=True, slots=True)
class Refused:
    """The secondary model refused, in the agreed form."""

    reason: PolicyRefusal


@dataclass(frozen=True, slots=True)
class Blocked:
    """A reply that must not be released: the checks that it failed, and the number of canaries in it.

    `phrases` are those of its words and phrases that may not leave, for the secondary model, which wrote them.
    """

    codes: tuple[GateCode, ...]
    canary_hits: int = 0
    phrases: tuple[str, ...] = field(default=(), repr=False)


Verdict = Released | Refused | Blocked

CaseT = TypeVar("CaseT")


@dataclass(frozen=True, slots=True)
class Gate(Generic[CaseT]):
    """The gate's functions.

    `prepare(chunks, user_words, canaries, siblings, language)` is called once a search, `judge(reply, case)` for each
    reply.
    """

    version: str
    prepare: Callable[[Sequence[ProtectedChunk], str, Sequence[str], Sequence[ProtectedChunk], Language | None], CaseT]
    judge: Callable[[bytes, CaseT], Verdict]
