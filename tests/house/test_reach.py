"""What a use case needs stays little: the modules that it imports, with all that these import."""

import ast
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import pytest

from tests.house.sources import PRODUCT, Source, parse, sources

MOST = {
    "backend.turns.services.start_turn": 75,
    "backend.turns.services.prepare_turn": 143,
    "chat_shell.turns.services.run_turn": 19,
}
"""How many modules a use case reaches at most. What it hands work to through a port is reached by who gives it that:
what resolves and checks a turn before it starts is counted by itself."""


def imports_of(files: Iterable[Source]) -> Mapping[str, frozenset[str]]:
    """Return what each module of ours imports of ours; empty ones are none."""
    modules = {_module(file.name): file for file in files if file.text.strip()}
    return {name: frozenset(_imported(file)) & modules.keys() - {name} for name, file in modules.items()}


def reached(imports: Mapping[str, frozenset[str]], start: str) -> frozenset[str]:
    """Return the modules that one reaches, itself included."""
    found, todo = {start}, [start]
    while todo:
        new = imports[todo.pop()] - found
        found |= new
        todo += new
    return frozenset(found)


def _module(name: str) -> str:
    path = PurePosixPath(name).with_suffix("")
    return ".".join(path.parent.parts if path.name == "__init__" else path.parts)


def _imported(file: Source) -> Iterable[str]:
    for node in file.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("use_case", sorted(MOST))
def test_a_use_case_reaches_few_modules(use_case: str) -> None:
    found = reached(imports_of(sources(*PRODUCT)), use_case)
    assert len(found) <= MOST[use_case], "\n".join(sorted(found))


def test_what_is_imported_on_the_way_is_reached() -> None:
    files = [
        parse("a/one.py", "from a import two"),
        parse("a/two.py", "import a.three"),
        parse("a/three.py", "from a.one import x"),
        parse("a/four.py", "import a.one"),
    ]
    assert reached(imports_of(files), "a.one") == {"a.one", "a.two", "a.three"}
