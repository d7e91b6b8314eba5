"""Putting one attribute in the place of another while a block runs."""

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def replaced(owner: object, name: str, value: object) -> Generator[None]:
    """Replace an attribute of a module or class."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
