"""What docstrings and comments of the product name is there: a name of its code, a file of the repository."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tests.house.sources import PRODUCT, ROOT, Source, parse, sources, tracked_files

_NAME = re.compile(r"`_?([a-z]+(?:_[a-z0-9]+)+)`")
_FILE = re.compile(r"(?<![\w./-])([\w/]+\.py)\b")
_COMMENT = re.compile(r"#.*")
_WORD = re.compile(r"\w+")


def said(file: Source) -> Iterator[str]:
    """Yield the docstrings and the comments of a file."""
    for node in file.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    yield from _COMMENT.findall(file.text)


def names_in(files: Iterable[Source]) -> frozenset[str]:
    """Return the names of some code, and the words of its strings but for docstrings."""
    found = set[str]()
    for file in files:
        spoken = {id(node.value) for node in file.nodes if isinstance(node, ast.Expr)}
        for node in file.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spoken:
                found.update(_WORD.findall(node.value))
            found.update(
                name
                for field in ("id", "attr", "arg", "name", "asname", "module")
                if isinstance(name := getattr(node, field, None), str)
            )
    return frozenset(name.lstrip("_") for each in found for name in each.split("."))


def endings(paths: Iterable[PurePosixPath]) -> frozenset[str]:
    """Return the ways to name some files: by their whole paths, or by the ends of these."""
    return frozenset("/".join(path.parts[start:]) for path in paths for start in range(len(path.parts)))


def unknown(file: Source, names: frozenset[str], places: frozenset[str]) -> list[str]:
    """Return what a file names that is not there."""
    return [
        f"{file.name}: {word}"
        for text in said(file)
        for word in (
            *(name for name in _NAME.findall(text) if name not in names),
            *(path for path in _FILE.findall(text) if path not in places),
        )
    ]


def test_what_docstrings_and_comments_name_is_there() -> None:
    files = sources(*PRODUCT, "protos")
    names = names_in(files)
    places = endings(PurePosixPath(path.relative_to(ROOT)) for path in tracked_files() if path.suffix == ".py")
    assert [fault for file in files for fault in unknown(file, names, places)] == []


def test_the_check_bites() -> None:
    code = 'def go_on(by_name):  # as planted.py and b/there.py\n    """Run `go_on` `by_name`."""'
    file = parse("backend/a.py", f'"""See `planted_name`."""\n{code}')
    assert unknown(file, names_in([file]), endings([PurePosixPath("backend/b/there.py")])) == [
        "backend/a.py: planted_name",
        "backend/a.py: planted.py",
    ]
