"""The house gets lighter: figures that no other limit sees, each with a limit and the goal that it falls to.

Where a goal is not reached yet, the limit is the figure of the day it was written down: whoever brings a figure down
brings its limit down, and nobody brings one up.
"""

import ast
import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from tests.house.sources import Function, Source, parse, sources

_PRODUCT = ("backend", "chat_shell", "shared", "cli", "protos")

LINES, LINES_GOAL = 96_672, 70_000
FILES_IN_A_FOLDER, FILES_IN_A_FOLDER_GOAL = 25, 25
BAGS, BAGS_GOAL = 10, 12
FIELDS_OF_A_BAG, FIELDS_OF_A_BAG_GOAL = 8, 8
LONE_PORTS, LONE_PORTS_GOAL = 0, 0


def folders(files: Iterable[Source]) -> Counter[str]:
    """Count the modules of each folder; each revision of a schema is a file for ever."""
    places = [PurePath(file.name) for file in files]
    return Counter(
        str(place.parent) for place in places if place.name != "__init__.py" and "migrations" not in place.parts
    )


class Classes:
    """The classes of some files, found by their names."""

    def __init__(self, files: Sequence[Source]) -> None:
        found = [(file, node) for file in files for node in file.nodes if isinstance(node, ast.ClassDef)]
        self.all = found
        self._named: defaultdict[str, list[tuple[Source, ast.ClassDef]]] = defaultdict(list)
        for file, node in found:
            self._named[node.name].append((file, node))
        self._callables = {
            name for file in files for name, value in _aliases(file) if "Callable" in _names_in(value)
        } | {"Callable"}

    def bags(self) -> dict[str, int]:
        """Return the bags, each by its place and name, with the number of their fields.

        A bag is a dataclass or NamedTuple without a method of its own, of which half of the fields or more, and two at
        least, hold what acts: a port, a service, a function or another bag. It is handed on so that a function keeps
        under seven parameters, and says nothing.
        """
        return {f"{file.at(node)} {node.name}": len(_fields(node)) for file, node in self.all if self._is_bag(node)}

    def lone_ports(self) -> list[str]:
        """Return the protocols that one class of the product implements, and no double of a test.

        What no class of ours implements describes a library's class, or a function.
        """
        return [
            f"{file.at(node)} {node.name}"
            for file, node in self.all
            if _is_protocol(node) and not file.is_test and self._is_lone(node)
        ]

    def _is_lone(self, port: ast.ClassDef) -> bool:
        asked = self._members(port)
        found = [file for file, node in self.all if not _is_protocol(node) and asked <= self._members(node)]
        return len(found) == 1 and not found[0].is_test

    @functools.cache  # noqa: B019 -- the classes live as long as the test
    def _members(self, node: ast.ClassDef, *below: ast.ClassDef) -> frozenset[str]:
        above = [base for name in _bases(node) for _, base in self._named.get(name, ()) if base not in (node, *below)]
        return frozenset(_own_members(node)).union(*(self._members(base, node, *below) for base in above))

    def _is_bag(self, node: ast.ClassDef, *within: ast.ClassDef) -> bool:
        fields = _fields(node)
        if not _is_record(node) or _methods(node):
            return False
        acting = [each for each in fields if any(self._acts(name, node, *within) for name in _names_in(each))]
        return len(acting) >= max(2, len(fields) / 2)

    def _acts(self, name: str, *within: ast.ClassDef) -> bool:
        if name in self._callables:
            return True
        known = [node for _, node in self._named.get(name, ()) if node not in within]
        return any(_is_protocol(node) or _is_service(node) or self._is_bag(node, *within) for node in known)


def _is_service(node: ast.ClassDef) -> bool:
    """Whether a class waits for something: what does not is a value, or is cheap to build where it is used."""
    return not _is_record(node) and any(isinstance(each, ast.AsyncFunctionDef) for each in _methods(node))


def _is_record(node: ast.ClassDef) -> bool:
    is_dataclass = any("dataclass" in _names_in(each) for each in node.decorator_list)
    return is_dataclass or bool({"NamedTuple", "BaseModel", "WireModel"} & _bases(node))


def _is_protocol(node: ast.ClassDef) -> bool:
    return "Protocol" in _bases(node)


def _bases(node: ast.ClassDef) -> set[str]:
    return {name for base in node.bases for name in _names_in(base.value if isinstance(base, ast.Subscript) else base)}


def _methods(node: ast.ClassDef) -> list[Function]:
    return [each for each in node.body if isinstance(each, Function)]


def _fields(node: ast.ClassDef) -> list[ast.expr]:
    return [each.annotation for each in node.body if isinstance(each, ast.AnnAssign)]


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }


def _aliases(file: Source) -> Iterator[tuple[str, ast.expr]]:
    for node in file.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _own_members(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        match each:
            case ast.FunctionDef(name="__init__"):
                yield from (
                    field.attr
                    for field in ast.walk(each)
                    if isinstance(field, ast.Attribute) and isinstance(field.ctx, ast.Store)
                )
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case _:
                pass


def _over(counted: Mapping[str, int], limit: int) -> list[str]:
    return [f"{name}: {count}" for name, count in counted.items() if count > limit]


def test_the_product_does_not_grow() -> None:
    assert sum(file.line_count for file in sources(*_PRODUCT)) <= max(LINES, LINES_GOAL)


def test_no_folder_is_overfull() -> None:
    assert _over(folders(sources(*_PRODUCT)), max(FILES_IN_A_FOLDER, FILES_IN_A_FOLDER_GOAL)) == []


def test_few_classes_only_keep_what_functions_take() -> None:
    found = Classes(sources(*_PRODUCT)).bags()
    assert len(found) <= max(BAGS, BAGS_GOAL), sorted(found)
    assert _over(found, max(FIELDS_OF_A_BAG, FIELDS_OF_A_BAG_GOAL)) == []


def test_a_protocol_has_two_implementations_or_a_double() -> None:
    found = Classes(sources(*_PRODUCT, "tests", "deploy")).lone_ports()
    assert len(found) <= max(LONE_PORTS, LONE_PORTS_GOAL), found


_STORE = "class Store(Protocol):\n    async def find(self): ...\n"
_SQL = "class SqlStore:\n    async def find(self): ...\n"


def test_the_checks_bite() -> None:
    assert folders([parse(f"backend/a/{name}.py", "") for name in ("__init__", "b", "c")]) == {"backend/a": 2}
    assert not folders([parse("backend/migrations/versions/a.py", "")])
    bag = "class Parts(NamedTuple):\n    store: Store\n    now: Callable[[], float]\n    limit: int\n"
    made = _bags(_STORE, bag)
    assert list(made.values()) == [3]
    for text in (
        "class Parts(NamedTuple):\n    store: Store\n    limit: int\n",
        bag + "    size: int\n    name: str\n",
        bag + "    def first(self): ...\n",
        bag.replace("NamedTuple", "Reader"),
    ):
        assert not _bags(_STORE, text), text
    assert len(_bags(_STORE, bag, "@dataclass(frozen=True)\nclass More:\n    parts: Parts\n    store: Store\n")) == 2


def test_a_port_without_a_double_is_found() -> None:
    port, sql = parse("backend/a/ports.py", _STORE), parse("backend/a/sql/store.py", _SQL)
    assert Classes([port, sql]).lone_ports()
    assert not Classes([port]).lone_ports()
    for other in ("backend/a/redis/store.py", "tests/fakes/store.py"):
        assert not Classes([port, sql, parse(other, _SQL.replace("Sql", "Other"))]).lone_ports()
    inherits = parse("tests/fakes/store.py", "class Slow(SqlStore):\n    def later(self): ...\n")
    assert not Classes([port, sql, inherits]).lone_ports()


def _bags(*texts: str) -> dict[str, int]:
    return Classes([parse(f"backend/a/services/{number}.py", text) for number, text in enumerate(texts)]).bags()
