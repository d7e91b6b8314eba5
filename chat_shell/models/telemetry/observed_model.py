"""A model whose calls are observed: by who measures, prices or logs them."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from chat_shell.models.ports import Model, ModelAnswerEnd, ModelCall, ModelFragment


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


class ObservedModel:
    """Another model, with observers of its calls, of which each stands around those behind it."""

    def __init__(self, model: Model, observers: Sequence[ObserveCall]) -> None:
        self._model = model
        self._observers = observers

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment, None]:
        """Run one model call; see the port."""
        with ExitStack() as stack:
            hooks = [stack.enter_context(observe(call)) for observe in self._observers]
            on_first = [each.on_first for each in hooks if each.on_first is not None]
            on_fragment = [each.on_fragment for each in hooks if each.on_fragment is not None]
            on_end = [each.on_end for each in reversed(hooks) if each.on_end is not None]
            stream = cast(AsyncGenerator[ModelFragment], self._model.stream(call, deadline))
            async with aclosing(stream) as fragments:
                async for fragment in fragments:
                    while on_first:
                        on_first.pop()()
                    if isinstance(fragment, ModelAnswerEnd):
                        for complete in on_end:
                            fragment = complete(fragment)
                    else:
                        for tell in on_fragment:
                            tell(fragment)
                    yield fragment
