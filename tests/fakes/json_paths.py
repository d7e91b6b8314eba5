"""Reading JSON bodies in tests."""

from typing import Any


def at(body: object, *path: str | int) -> Any:
    """Return what stands at a path of keys and indexes."""
    found: Any = body
    for step in path:
        found = found[step]
    return found
