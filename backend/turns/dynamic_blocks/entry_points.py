"""Loading the blocks that installed packages offer in the group `ballast.dynamic_blocks`.

An entry point names a class without constructor arguments, or a ready object, that fills
`backend.turns.ports.dynamic_blocks.DynamicBlockSource`. Registering an entry point enables it:

    [project.entry-points."ballast.dynamic_blocks"]
    identity = "backend.turns.dynamic_blocks.identity:IdentityBlock"
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass
from typing import cast

from backend.turns.ports.dynamic_blocks import DynamicBlockSource

GROUP = "ballast.dynamic_blocks"


def load_installed_blocks() -> tuple[DynamicBlockSource, ...]:
    """Load the blocks of all installed packages.

    Raises:
        TypeError: an entry point is no block source; the message names it.
    """
    return load_blocks(entry_points(group=GROUP))


def load_blocks(points: Iterable[EntryPoint]) -> tuple[DynamicBlockSource, ...]:
    """Load entry points in the order of their names, which is the order of the blocks in a prompt.

    Raises:
        TypeError: a loaded object is no block source; the message names it.
    """
    return tuple(_load(point) for point in sorted(points, key=lambda point: (point.name, point.value)))


def _load(point: EntryPoint) -> DynamicBlockSource:
    loaded: object = point.load()
    source: object = loaded() if isclass(loaded) else loaded
    if not callable(getattr(source, "block", None)):
        raise TypeError(f"The dynamic block {point.name!r} ({point.value}) has no method 'block'.")
    return cast(DynamicBlockSource, source)
