"""A cache of a fixed number of entries, which forgets what was used longest ago."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Name = TypeVar("Name")
Known = TypeVar("Known")


class Bounded(Generic[Name, Known]):
    """A mapping that forgets what has not been used for the longest time, where it would hold too much.

    `size_of` tells how much of it a value takes; by default all count alike.
    """

    def __init__(self, most: int, size_of: Callable[[Known], int] = lambda _known: 1) -> None:
        self._most = most
        self._size_of = size_of
        self._size = 0
        self._known: OrderedDict[Name, Known] = OrderedDict()

    def find(self, name: Name) -> Known | None:
        """Return what is known under a name."""
        if name not in self._known:
            return None
        self._known.move_to_end(name)
        return self._known[name]

    def put(self, name: Name, known: Known) -> None:
        """Know something under a name."""
        self.drop(name)
        self._known[name] = known
        self._size += self._size_of(known)
        while self._size > self._most:
            self.drop(next(iter(self._known)))

    def drop(self, name: Name) -> None:
        """Forget a name."""
        if name in self._known:
            self._size -= self._size_of(self._known.pop(name))

    def __len__(self) -> int:
        """Return how many names are known."""
        return len(self._known)
