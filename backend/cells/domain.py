"""The phases of a tenant's move, and the table of keys by which a router finds cells."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Self

STOP_SECONDS = 4.5
"""Writes go on by themselves after so long, whatever has become of the move."""


class Phase(StrEnum):
    """How far a tenant's move is.

    COPYING, STOPPED: it may go back. SWITCHING: nothing is written until it has arrived, whoever brings it there.
    MOVED: the old cell has a copy to read, DROPPING: that goes. ARRIVED stands in the other cell.
    """

    COPYING = "copying"
    STOPPED = "stopped"
    SWITCHING = "switching"
    MOVED = "moved"
    DROPPING = "dropping"
    ARRIVED = "arrived"


class MoveOrder(NamedTuple):
    """What an operator asks for: which tenant, the cell, the router's file of routes, and what else than to move it."""

    tenant: str
    cell: str
    routes: str = ""
    is_drop: bool = False
    is_back: bool = False

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Self | None:
        """Read `T --to CELL [--routes FILE] [--drop | --back]`; None where it is anything else."""
        match list(arguments):
            case [tenant, "--to", cell, *rest] if tenant and cell:
                return cls._with(tenant, cell, rest)
            case _:
                return None

    @classmethod
    def _with(cls, tenant: str, cell: str, rest: list[str]) -> Self | None:
        match rest:
            case []:
                return cls(tenant, cell)
            case ["--routes", file]:
                return cls(tenant, cell, routes=file)
            case ["--drop"]:
                return cls(tenant, cell, is_drop=True)
            case ["--back"]:
                return cls(tenant, cell, is_back=True)
            case _:
                return None


def addresses_of(text: str) -> Mapping[str, str]:
    """Read `c2=postgresql+asyncpg://…` separated by blanks.

    Raises:
        ValueError: a part has another form.
    """
    pairs = [part.partition("=") for part in text.split()]
    if any(not cell or not address for cell, _, address in pairs):
        raise ValueError("must look like c2=postgresql+asyncpg://…, several separated by blanks")
    return {cell: address for cell, _, address in pairs}


def with_routes(document: dict[str, Any], beginnings: Sequence[str], cell: str) -> dict[str, Any]:
    """Add keys, by how they begin, to the table of an Envoy route configuration (deploy/router/routes.json).

    Raises:
        KeyError: it has no such table, or no entry whose form can be taken for that cell.
    """
    keys = document["resources"][0]["virtual_hosts"][0]["matcher"]["matcher_tree"]["prefix_match_map"]["map"]
    action = keys[f"Bearer sk-ballast-{cell}"]
    keys.update({f"Bearer {beginning}": action for beginning in beginnings})
    return document
