"""Which pages the site of the documentation has."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from shared.models.values import JsonValue

CONFIGURATION = Path(__file__).with_name("zensical.toml")
REFERENCE = "docs/reference"
"""Where the pages of the API reference stand, which are written at each build."""


def list_written_pages() -> list[str]:
    """Return the pages that somebody has written, as they are named from the root, in the order of the navigation."""
    return [name for name in _navigation() if not name.startswith(f"{REFERENCE}/")]


def list_named_reference_pages() -> list[str]:
    """Return the file names of the pages of the API reference that the navigation names."""
    return [name.removeprefix(f"{REFERENCE}/") for name in _navigation() if name.startswith(f"{REFERENCE}/")]


def _navigation() -> Iterator[str]:
    return _pages_in(tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))["project"]["nav"])


def _pages_in(entry: JsonValue) -> Iterator[str]:
    match entry:
        case str():
            yield entry
        case list():
            for each in entry:
                yield from _pages_in(each)
        case dict():
            for each in entry.values():
                yield from _pages_in(each)
        case _:
            raise ValueError(f"neither a page nor a part of the navigation: {entry!r}")
