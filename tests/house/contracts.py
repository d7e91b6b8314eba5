"""What import-linter has no contract for: layers that hold in all packages, and which of them others may import.

A service consists of packages: `backend.turns`, `chat_shell.models`. A package has layers: `domain` below `ports` below
`services` below every other folder, which is an outside (`http`, `sql` …), below `wiring`. A layer may be a folder or a
file. What lies directly in the service (`app`, `settings` …) puts packages together and stands above all layers.
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
_LAYERS = {"domain": 0, "ports": 1, "services": 2, "wiring": 4}
_SHOWN_LAYERS = ("domain", "ports", "services")


@dataclass(frozen=True)
class Place:
    """Where a module stands: its package, and the folder or file of that package."""

    package: str
    folder: str

    @property
    def layer(self) -> int:
        """How high it stands; an outside folder stands above services."""
        return _LAYERS.get(self.folder, _OUTSIDE)


def place_of(module: str, service: str) -> Place | None:
    """Return a module's place, or None where it stands in no package of the service."""
    root, _, path = module.partition(".")
    package, _, rest = path.partition(".")
    return Place(package, rest.partition(".")[0]) if root == service and rest else None


def fault_of(importer: Place, imported: Place) -> str | None:
    """Say what is wrong with an import, or None."""
    if importer.layer < imported.layer:
        return "goes up a layer"
    is_outside = imported.folder not in _SHOWN_LAYERS
    is_own = importer.package == imported.package
    is_foundation = imported.package == "foundation" and imported.folder == importer.folder
    return "goes into an outside folder of another package" if is_outside and not is_own and not is_foundation else None


class PackageLayers(Contract):
    """No import goes up a layer, in whatever package, and none goes into an outside folder of another package.

    An outside folder may use the folder of its name in `foundation`. `allowed_imports` lists further ones, as
    `importer -> imported` with wildcards; `packages_apart` the packages with contracts of their own.
    """

    type_name = "package_layers"

    service = fields.StringField()
    allowed_imports = fields.ListField(subfield=fields.StringField(), required=False)
    packages_apart = fields.ListField(subfield=fields.StringField(), required=False)

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
        return place if place is not None and place.package not in _listed(self.packages_apart) else None

    def _is_open(self, statement: str) -> bool:
        return any(fnmatchcase(statement, pattern) for pattern in _listed(self.allowed_imports))


def _listed(option: object) -> list[str]:
    """Read a list of the contract: import-linter puts its value in the place of the field."""
    return cast(list[str], option or [])
