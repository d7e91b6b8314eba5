"""No public name stands for two things within a service, and no two names differ by one letter only."""

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from tests.house.sources import Function, Source, parse, sources

_SERVICES = ("backend", "chat_shell", "shared", "cli")
_APART = ("chat_shell/sealed/gate/", "backend/migrations/versions/")
_ALLOWED_NAMES = frozenset({"main"})


def places_of_names(files: Sequence[Source]) -> Mapping[str, list[str]]:
    """Return where each public class and each public function of a module is defined."""
    places: dict[str, list[str]] = defaultdict(list)
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
                places[node.name].append(file.at(node))
    return places


def doubles(files: Sequence[Source]) -> list[str]:
    """Describe the names that stand twice, and the pairs that differ by one letter."""
    places = places_of_names([file for file in files if not file.name.startswith(_APART)])
    names = sorted(set(places) - _ALLOWED_NAMES)
    twice = [f"{name}: {', '.join(places[name])}" for name in names if len(places[name]) > 1]
    alike = [
        f"{one} and {other}: {places[one][0]}, {places[other][0]}"
        for one, other in combinations(names, 2)
        if differ_by_one_letter(one, other)
    ]
    return twice + alike


def differ_by_one_letter(one: str, other: str) -> bool:
    """Say whether one letter exchanged, added or left out turns a name into the other."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1 or one == other:
        return False
    start = next((place for place, letter in enumerate(short) if letter != long[place]), len(short))
    return short[start + (len(short) == len(long)) :] == long[start + 1 :]


def test_each_name_stands_for_one_thing():
    assert [double for service in _SERVICES for double in doubles(sources(service))] == []


def test_the_check_bites():
    key = parse("backend/identity/domain/a.py", "class ApiKey: ...\ndef read(): ...\ndef _own(): ...\ndef main(): ...")
    assert doubles([key]) == []
    for text in (
        "class ApiKey: ...",
        "async def read(): ...",
        "class ApiKeys: ...",
        "class ApoKey: ...",
        "def red(): ...",
    ):
        assert doubles([key, parse("backend/identity/services/b.py", text)]), text
    for text in (
        "class ApiKeyed: ...",
        "def _own(): ...",
        "def main(): ...",
        "class A:\n    def read(self): ...",
        "class piKe: ...",
    ):
        assert doubles([key, parse("backend/identity/services/b.py", text)]) == [], text
    assert doubles([key, parse("chat_shell/sealed/gate/b.py", "class ApiKey: ...")]) == []
