"""Protected text is read in the sealed room alone, and a release is built by the gate alone: by the syntax trees."""

import ast

from tests.house.sources import Source, parse, sources

_ROOM = "chat_shell/sealed/"
_READS = frozenset({"reveal", "_ProtectedText__text"})
_TESTS_OF_THE_ROOM = ("tests/unit/chat_shell/sealed/", "tests/bench/", "tests/house/")
_BUILDERS = (f"{_ROOM}gate/",)
_READER_OF_RECORDS = f"{_ROOM}backend_wire.py"
_HOLDERS = (_ROOM, "chat_shell/knowledge/services/")
"""Where releases are at hand, of which a changed copy would be another one."""


def readers(file: Source) -> list[str]:
    """Name each place outside of the sealed room that could read protected text, by attribute or by its name."""
    if file.name.startswith((_ROOM, *_TESTS_OF_THE_ROOM)):
        return []
    nodes = (node for node in file.nodes if isinstance(node, ast.expr | ast.pattern))
    return [file.at(node) for node in nodes if _reads(node)]


def builders(file: Source) -> list[str]:
    """Name each place of the product, the gate apart, that builds a release or could pass on what does."""
    if file.is_test or file.name.startswith(_BUILDERS):
        return []
    return [file.at(node) for node in file.nodes if isinstance(node, ast.stmt | ast.expr) and _builds(node, file)]


def _reads(node: ast.expr | ast.pattern) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name in _READS
        case ast.MatchClass(kwd_attrs=names):
            return not _READS.isdisjoint(names)
        case _:
            return False


def _builds(node: ast.stmt | ast.expr, file: Source) -> bool:
    match node:
        case ast.ImportFrom(names=names):
            return any(alias.name == "Released" and alias.asname for alias in names)
        case (
            ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.NamedExpr(value=value) | ast.Return(value=value)
        ):
            return _is_release_class(value)
        case ast.Call(func=ast.Name(id="isinstance")):
            return False
        case ast.Call(func=ast.Attribute(attr="read_back")):
            return file.name != _READER_OF_RECORDS
        case ast.Call(func=ast.Attribute(attr="model_copy") | ast.Call()):
            return file.name.startswith(_HOLDERS)
        case ast.Call(func=func, args=arguments):
            return any(map(_is_release_class, (func, *arguments)))
        case _:
            return False


def _is_release_class(node: ast.expr | None) -> bool:
    """Tell whether an expression is the class of releases, or one of its attributes."""
    while isinstance(node, ast.Attribute):
        if node.attr == "Released":
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id == "Released"


def test_only_the_room_reads_protected_text():
    assert [place for file in sources() for place in readers(file)] == []


def test_only_the_gate_builds_a_release():
    assert [place for file in sources() for place in builders(file)] == []


def test_the_checks_bite():
    reading = "match x:\n case ProtectedText(reveal=r): pass"
    for text in ("x.text.reveal()", "r = x.reveal", "getattr(x, 'reveal')", "x._ProtectedText__text", reading):
        assert readers(parse("chat_shell/knowledge/services/a.py", text))
        assert readers(parse("tests/e2e/a.py", text))
        assert not readers(parse("chat_shell/sealed/gate/a.py", text))
    assert not readers(parse("backend/turns/domain/a.py", "revealed = x.revealing"))
    for text in (
        "Released(summary='')",
        "released.Released(x)",
        "Released.model_construct(x=1)",
        "Released.model_validate_strings(x)",
        "TypeAdapter(Released)",
        "make = Released",
        "make = released.Released.model_validate",
        "from chat_shell.sealed.verdicts import Released as R",
        "Released.read_back({})",
        "lambda: partial(Released, x)",
    ):
        assert builders(parse("chat_shell/sealed/room.py", text)), text
        assert builders(parse("backend/turns/domain/a.py", text)), text
        assert not builders(parse("chat_shell/sealed/gate/verdict.py", text))
    for text in ("released.model_copy(update={'summary': x})", "type(released)(x)"):
        assert builders(parse("chat_shell/sealed/room.py", text))
        assert builders(parse("chat_shell/knowledge/services/knowledge_tools.py", text))
    for text in (
        "Verdict = Released | Blocked",
        "isinstance(x, Released)",
        "def f(x: Released) -> Released | None: ...",
    ):
        assert not builders(parse("chat_shell/sealed/room.py", text))
    assert not builders(parse("chat_shell/sealed/backend_wire.py", "Released.read_back(x)"))
