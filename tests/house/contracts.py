"""What import-linter has no contract for: floors that hold through all rooms, and which folders a room shows to others.

A service is a package of rooms: `backend.turns`, `chat_shell.models`. A room has floors: `domain` below `ports` below
`services` below every other folder, which is an outside (`http`, `sql` …), below `wiring`. A floor may be a folder or a
file. What lies directly in the service (`app`, `settings` …) puts rooms together and stands above all floors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast

import grimp
from importlinter.application import output
from importlinter.domain import fields
from importlinter.domain.contract import Contract, ContractCheck

_OUTSIDE = 3
_FLOORS = {"domain": 0, "ports": 1, "services": 2, "wiring": 4}
_SHOWN_FLOORS = ("domain", "ports", "services")


@dataclass(frozen=True)
class Place:
    """Where a module stands: its room, and the folder or file of that room."""

    room: str
    folder: str

    @property
    def floor(self) -> int:
        """How high it stands; an outside folder stands above services."""
        return _FLOORS.get(self.folder, _OUTSIDE)


def place_of(module: str, service: str) -> Place | None:
    """Return a module's place, or None where it stands in no room of the service."""
    package, _, path = module.partition(".")
    room, _, rest = path.partition(".")
    return Place(room, rest.partition(".")[0]) if package == service and rest else None


def fault_of(importer: Place, imported: Place) -> str | None:
    """Say what is wrong with an import, or None."""
    if importer.floor < imported.floor:
        return "climbs a floor"
    is_outside = imported.folder not in _SHOWN_FLOORS
    is_own = importer.room == imported.room
    is_foundation = imported.room == "foundation" and imported.folder == importer.folder
    return "enters another room from outside" if is_outside and not is_own and not is_foundation else None


class FloorsAndDoors(Contract):
    """No import climbs a floor, in whatever room, and none enters another room but through the floors that it shows.

    An outside folder may use the folder of its name in `foundation`. `open_doors` lists the further imports that are
    allowed, as `importer -> imported` with wildcards; `rooms_apart` the rooms with contracts of their own.
    """

    type_name = "floors_and_doors"

    service = fields.StringField()
    open_doors = fields.ListField(subfield=fields.StringField(), required=False)
    rooms_apart = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Look at each import of the service."""
        faults = sorted(self._faults(graph))
        return ContractCheck(kept=not faults, metadata={"faults": faults})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print a line for each import."""
        for line in check.metadata["faults"]:
            output.print_error(line)

    def _faults(self, graph: grimp.ImportGraph) -> Iterator[str]:
        for importer in graph.modules:
            place = self._place(importer)
            if place is None:
                continue
            for imported in graph.find_modules_directly_imported_by(importer):
                target = self._place(imported)
                fault = fault_of(place, target) if target is not None else None
                if fault is not None and not self._is_open(f"{importer} -> {imported}"):
                    yield f"{importer} -> {imported}: {fault}"

    def _place(self, module: str) -> Place | None:
        place = place_of(module, cast(str, self.service))
        return place if place is not None and place.room not in _listed(self.rooms_apart) else None

    def _is_open(self, statement: str) -> bool:
        return any(fnmatchcase(statement, pattern) for pattern in _listed(self.open_doors))


def _listed(option: object) -> list[str]:
    """Read a list of the contract: import-linter puts its value in the place of the field."""
    return cast(list[str], option or [])
