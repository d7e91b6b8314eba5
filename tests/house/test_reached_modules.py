"""How many modules one must know to follow a use case: all that its module imports, and these in turn."""

import ast
from collections.abc import Iterator, Mapping

import pytest

from tests.house.sources import Source, parse, sources

_MOST: Mapping[str, int] = {"chat_shell.turns.services.run_turn": 24}


def reached(start: str, files: tuple[Source, ...]) -> set[str]:
    """Return the modules that a module reaches by imports; packages without code of their own do not count."""
    modules = {_module(file): file for file in files if file.tree.body}
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module in modules and module not in seen:
            seen.add(module)
            waiting += _imported(modules[module])
    return {module for module in seen if not _is_docstring_alone(modules[module])}


def _module(file: Source) -> str:
    return file.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _is_docstring_alone(file: Source) -> bool:
    return all(isinstance(node, ast.Expr) for node in file.tree.body)


def _imported(file: Source) -> Iterator[str]:
    for node in file.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("start", _MOST)
def test_a_use_case_reaches_few_modules(start: str):
    found = reached(start, sources("shared", "backend", "chat_shell"))
    assert start in found
    assert len(found) <= _MOST[start], sorted(found)


def test_the_check_bites():
    files = (
        parse("a/x.py", "from a import y"),
        parse("a/y.py", "import b.z"),
        parse("b/z.py", "import a.x"),
        parse("b/__init__.py", '"""Docs."""'),
        parse("a/w.py", "import a.x"),
    )
    assert reached("a.x", files) == {"a.x", "a.y", "b.z"}
