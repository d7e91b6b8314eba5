"""The source files of the project, parsed once."""

import ast
import functools
import gc
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.memory import no_looks_for_cycles

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("backend", "chat_shell")
PRODUCT = ("shared", "backend", "chat_shell", "cli", "deploy")
_GENERATED_SUFFIXES = ("_pb2.py", "_pb2_grpc.py")
_NOT_OURS = (".git", ".venv", "var", "__pycache__", ".hypothesis", ".pytest_cache", ".ruff_cache")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A Python file; `name` is its path from the root."""

    name: str
    text: str
    tree: ast.Module

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of its tree: walking costs more than what is asked of them."""
        return tuple(ast.walk(self.tree))

    @property
    def is_test(self) -> bool:
        """Whether it belongs to the tests."""
        return self.name.startswith("tests/")

    @property
    def is_outside(self) -> bool:
        """Whether it stands in a folder of a package that touches an outside: HTTP, SQL, a library of the telemetry."""
        service, *path = self.name.split("/")
        return service in SERVICES and len(path) > 2 and path[1] not in ("domain", "ports", "services")

    @property
    def line_count(self) -> int:
        """How many lines it has."""
        return len(self.text.splitlines())

    def functions(self) -> Iterator[Function]:
        """Yield every function and method, nested ones too."""
        return (node for node in self.nodes if isinstance(node, Function))

    def at(self, node: ast.stmt | ast.expr | ast.ExceptHandler | ast.arg | ast.pattern) -> str:
        """Return the place of a node as `file:line`."""
        return f"{self.name}:{node.lineno}"


def parse(name: str, text: str) -> Source:
    """Make a source of a text."""
    return Source(name, text, ast.parse(text))


@functools.cache
def sources(*directories: str) -> tuple[Source, ...]:
    """Return the files we write, ordered by path; without directories all of them."""
    return tuple(
        _parsed(path)
        for directory in directories or (*PRODUCT, "tests", "requirements")
        for path in sorted((ROOT / directory).rglob("*.py"))
        if not path.name.endswith(_GENERATED_SUFFIXES)
    )


@functools.cache
def _parsed(path: Path) -> Source:
    # Trees stay; a look for cycles over millions of their nodes would take longer than parsing.
    with no_looks_for_cycles():
        source = parse(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        assert source.nodes
    gc.freeze()
    return source


def length_lines(function: Function) -> int:
    """Count the lines of a function without its decorators and its docstring."""
    assert function.end_lineno is not None
    total = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if not (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    ):
        return total
    assert first.end_lineno is not None
    return total - (first.end_lineno - first.lineno + 1)


def parameter_count(function: Function) -> int:
    """Count the parameters without `self` and `cls`, star arguments not counted."""
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def tracked_files() -> list[Path]:
    """Return the files under version control, or all of them where there is no git."""
    names = tracked_names()
    if names is None:
        return [path for path in ROOT.rglob("*") if path.is_file() and not set(_NOT_OURS) & set(path.parts)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def tracked_names(*options: str) -> list[str] | None:
    """Return what `git ls-files` lists with these options; None where there is no git."""
    try:
        asked = ["git", "ls-files", "-z", *options]
        listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in listed.stdout.split("\0") if name]
