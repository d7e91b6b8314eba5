"""The gate's verdicts on a reply, and the interface of the gate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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

Judge = Callable[[bytes], Verdict]
"""Judges a reply of the secondary model."""


class Gate(Protocol):
    """Decides what of the secondary model's replies leaves the room."""

    @property
    def version(self) -> str:
        """Return the version of its rules; what another one released is not used again."""
        ...

    def prepare(
        self,
        chunks: Sequence[ProtectedChunk],
        user_words: str,
        canaries: Sequence[str],
        siblings: Sequence[ProtectedChunk],
        language: Language | None,
    ) -> Judge:
        """Read the chunks of one search, and return what judges each of its replies."""
        ...
