"""A memory of what was used last."""

from collections import OrderedDict
from typing import Generic, TypeVar

Name = TypeVar("Name")
Known = TypeVar("Known")


class Bounded(Generic[Name, Known]):
    """A mapping that forgets what has not been used for the longest time, where it would hold too much."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[Name, Known] = OrderedDict()

    def find(self, name: Name) -> Known | None:
        """Return what is known under a name."""
        if name not in self._known:
            return None
        self._known.move_to_end(name)
        return self._known[name]

    def put(self, name: Name, known: Known) -> None:
        """Know something under a name."""
        self._known[name] = known
        self._known.move_to_end(name)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def drop(self, name: Name) -> None:
        """Forget a name."""
        self._known.pop(name, None)

    def __len__(self) -> int:
        """Return how many names are known."""
        return len(self._known)
