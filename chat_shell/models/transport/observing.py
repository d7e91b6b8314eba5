"""Observers of model calls: who measures, prices or logs them."""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from chat_shell.models.ports import ModelAnswerEnd, ModelCall, ModelFragment


@dataclass(frozen=True, slots=True)
class CallHooks:
    """What an observer is told of one model call; a hook may not raise or block. The end may be given with more in it.

    `on_first` is called at the first fragment, `on_fragment` for each but the end.
    """

    on_first: Callable[[], None] | None = None
    on_fragment: Callable[[ModelFragment], None] | None = None
    on_end: Callable[[ModelAnswerEnd], ModelAnswerEnd] | None = None


ObserveCall = Callable[[ModelCall], AbstractContextManager[CallHooks]]
"""Observes a call while the block runs; an error of the call passes through the block."""


class ObservedCall:
    """A model call, of whose fragments its observers are told; each stands around those behind it."""

    def __init__(self, hooks: Sequence[CallHooks]) -> None:
        self._on_first = [each.on_first for each in hooks if each.on_first is not None]
        self._on_fragment = [each.on_fragment for each in hooks if each.on_fragment is not None]
        self._on_end = [each.on_end for each in reversed(hooks) if each.on_end is not None]

    def pass_on(self, fragment: ModelFragment) -> ModelFragment:
        """Tell of a fragment, and return it; the end with what observers have put into it."""
        while self._on_first:
            self._on_first.pop()()
        if isinstance(fragment, ModelAnswerEnd):
            for complete in self._on_end:
                fragment = complete(fragment)
        else:
            for tell in self._on_fragment:
                tell(fragment)
        return fragment


@contextmanager
def observed(observers: Sequence[ObserveCall], call: ModelCall) -> Generator[ObservedCall]:
    """Have a call observed while the block runs."""
    with ExitStack() as stack:
        yield ObservedCall([stack.enter_context(observe(call)) for observe in observers])
