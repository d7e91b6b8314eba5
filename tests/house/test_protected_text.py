"""Protected text is read in the sealed room alone, and a release is built by the gate alone: by the syntax trees."""

import ast

from tests.house.sources import Source, parse, sources

_ROOM = "chat_shell/sealed/"
_READS = frozenset({"reveal", "_ProtectedText__text"})
_TESTS_OF_THE_ROOM = ("tests/unit/sealed/", "tests/unit/gate/", "tests/bench/", "tests/house/")
_BUILDERS = (f"{_ROOM}gate/",)
_BUILDS = frozenset({"Released", "Released.model_construct", "Released.model_validate", "Released.model_validate_json"})


def readers(file: Source) -> list[str]:
    """Name each place outside of the room that could read protected text, by attribute or by its name."""
    if file.name.startswith((_ROOM, *_TESTS_OF_THE_ROOM)):
        return []
    return [file.at(node) for node in ast.walk(file.tree) if isinstance(node, ast.expr) and _reads(node)]


def builders(file: Source) -> list[str]:
    """Name each place of the product, the gate apart, that builds a release."""
    if file.is_test or file.name.startswith(_BUILDERS):
        return []
    return [
        file.at(node)
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition("released.")[2] in _BUILDS
    ]


def _reads(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name in _READS
        case _:
            return False


def test_only_the_room_reads_protected_text():
    assert [place for file in sources() for place in readers(file)] == []


def test_only_the_gate_builds_a_release():
    assert [place for file in sources() for place in builders(file)] == []


def test_the_checks_bite():
    for text in ("chunk.text.reveal()", "read = text.reveal", "getattr(text, 'reveal')", "x._ProtectedText__text"):
        assert readers(parse("chat_shell/adapters/tools/a.py", text))
        assert readers(parse("tests/e2e/a.py", text))
        assert not readers(parse("chat_shell/sealed/gate/a.py", text))
    assert not readers(parse("backend/domain/a.py", "revealed = x.revealing"))
    for text in ("Released(summary='')", "released.Released(x)", "Released.model_construct(x=1)"):
        assert builders(parse("chat_shell/sealed/room.py", text))
        assert builders(parse("backend/domain/a.py", text))
        assert not builders(parse("chat_shell/sealed/gate/verdict.py", text))
    assert not builders(parse("chat_shell/sealed/room.py", "Released.read_back(x)"))
