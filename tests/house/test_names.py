"""Names say what a thing is; words that fit everything are banned."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from tests.house.sources import PRODUCT, ROOT, Source, parse, sources

_BANNED = frozenset(
    {
        "process", "processes", "processed", "processing", "processor", "manage", "manages", "managed", "manager",
        "helper", "helpers", "util", "utils", "common", "misc", "data", "info", "infos", "do",
    }
)  # fmt: skip
# words of a house for what the field calls package, layer, server, file index, document version and wake-up signal
_OF_A_HOUSE = frozenset({"rooms", "floor", "door", "shelf", "shelves", "edition", "stretch", "caretaker", "bell"})
_SCHEMA = ("backend/knowledge/", "backend/search/", "backend/migrations/", "shared/ids.py", "tests/")
_OUTSIDE = "the outside folders of packages"
# participles of the past that no ending tells, and imperatives that end like one
_IRREGULAR = frozenset(
    {
        "begun", "broken", "brought", "built", "chosen", "done", "drawn", "driven", "found", "frozen", "given", "gone",
        "heard", "held", "hidden", "kept", "known", "left", "lent", "lost", "made", "meant", "paid", "said", "seen",
        "sent", "shown", "spent", "spoken", "stood", "taken", "thrown", "told", "withheld", "worn", "written",
    }
)  # fmt: skip
_IMPERATIVES = frozenset({"embed", "bring", "ping", "ring", "string"})
# names that a protocol, a library or the operating system has given
_GIVEN_IN = {
    "data": (  # lists and frames of OpenAI's API, bytes of asyncio
        _OUTSIDE,
        "shared/http_server/connection.py",
        "backend/chat_shell_client/http_client.py",
        "backend/conversations/domain/item_pages.py",
        "shared/models/knowledge_api.py",
        "tests/",
    ),
    "info": (_OUTSIDE, "shared/telemetry.py", "tests/"),  # a logger's method
    "file_data": ("backend/conversations/domain/input_items.py", "backend/openai_api/domain/chat_messages.py"),
    "DATA_URL": ("backend/conversations/domain/images.py",),  # RFC 2397
    "data_received": ("shared/http_server/connection.py", "backend/foundation/redis/", "tests/"),  # asyncio
    "handle_data": ("backend/",),  # html.parser
    "process_bind_param": ("backend/foundation/sql/",),  # SQLAlchemy
    "process_result_value": ("backend/foundation/sql/",),
    "do_GET": ("deploy/", "tests/"),  # http.server
    "do_POST": ("deploy/", "tests/"),
    "do_handshake": ("shared/certificates.py",),  # ssl
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def defined_names(file: Source) -> Iterator[tuple[str, str]]:
    """Yield each name that a file gives, with its place."""
    yield PurePath(file.name).stem, file.name
    for node in file.nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, file.at(node)
            case ast.arg(arg=name):
                yield name, file.at(node)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, file.at(node)
            case _:
                pass


def badly_named(file: Source) -> list[str]:
    return [
        f"{place} {name}"
        for name, place in defined_names(file)
        if _BANNED.intersection(words(name))
        and not name.startswith("test_")  # a sentence, not a name
        and not _is_given(name, file)
    ]


def begins_with_participle(name: str) -> bool:
    """Return whether the first word of a name is a participle, of which those in `-eed` are imperatives: feed, need."""
    first, *_ = (*words(name), "")
    has_ending = first.endswith(("ed", "ing")) and not first.endswith("eed")
    return first in _IRREGULAR or (has_ending and first not in _IMPERATIVES)


def named_by_participles(file: Source) -> list[str]:
    """List the functions that say what comes of them (`sorted_rows`) in place of what they do (`sort_rows`).

    Properties and context managers are read as nouns, and conversions name what they convert: `served_to_proto`.
    """
    return [
        f"{file.at(node)} {node.name}"
        for node in file.functions()
        if begins_with_participle(node.name)
        and not re.search("property|contextmanager", " ".join(map(ast.unparse, node.decorator_list)))
        and not re.search("^__|_(to|from)_", node.name)
    ]


def words_of_a_house(text: str) -> set[str]:
    """Return the words of a house in a name or a text, which may be in the plural."""
    return {
        word
        for word in words(text)
        if not _OF_A_HOUSE.isdisjoint((word, word.removesuffix("s"), word.removesuffix("es")))
    }


def named_like_a_house(file: Source) -> list[str]:
    """List the names, those of tests too, that have a word of a house; the columns of the schema have `edition`."""
    return [
        f"{place} {name}"
        for name, place in defined_names(file)
        for word in words_of_a_house(name)
        if not (word.startswith("edition") and file.name.startswith(_SCHEMA))
    ]


def headings_like_a_house(text: str) -> list[str]:
    """List the headings of a page of Markdown that have a word of a house."""
    return [line for line in re.findall(r"^#+ .*", text, re.MULTILINE) if words_of_a_house(line)]


def _is_given(name: str, file: Source) -> bool:
    places = _GIVEN_IN.get(name, ("nowhere",))
    return file.name.startswith(places) or (_OUTSIDE in places and file.is_outside)


def test_names_are_words_of_the_glossary():
    assert [name for file in sources() for name in badly_named(file)] == []


def test_no_name_and_no_heading_has_a_word_of_a_house():
    assert [name for file in sources() for name in named_like_a_house(file)] == []
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/[!a]*").glob("*.md")]
    assert [f"{page.name} {each}" for page in pages for each in headings_like_a_house(page.read_text("utf-8"))] == []


def test_functions_are_named_by_what_they_do():
    assert [name for file in sources(*PRODUCT) for name in named_by_participles(file)] == []


def test_participles_are_found():
    for name in ("sorted_rows", "_kept", "reading_of", "held", "_named"):
        assert named_by_participles(parse("backend/turns/domain/a.py", f"def {name}(): ..."))
    for name in (
        "sort_rows",
        "_feed",
        "need_upkeep",
        "embed",
        "from_rows",
        "with_named",
        "__init__",
        "served_to_proto",
    ):
        assert not named_by_participles(parse("backend/turns/domain/a.py", f"def {name}(): ..."))
    for decorator in ("property", "contextmanager", "functools.cached_property", "contextlib.asynccontextmanager"):
        text = f"@{decorator}\ndef held(): ..."
        assert not named_by_participles(parse("backend/turns/domain/a.py", text))


def test_words_of_a_house_are_found():
    for text in (
        "def open_door(): ...",
        "class Shelves: ...",
        "a_floor = 1",
        "def test_both_doors(): ...",
        "rooms = 2",
    ):
        assert named_like_a_house(parse("tests/unit/a.py", text)), text
    assert named_like_a_house(parse("backend/turns/domain/caretaker.py", ""))
    edition = "class Editions: ..."
    assert named_like_a_house(parse("backend/agents/domain/a.py", edition))
    for text in (edition, "def has_room_for(indoors): ...", "class SealedRoom: ..."):
        assert not named_like_a_house(parse("backend/knowledge/sql/a.py", text)), text
    assert headings_like_a_house("# Two doors\n\nA door.\n") == ["# Two doors"]


def test_the_check_bites():
    for text in ("def process_turn(): ...", "class DocumentManager: ...", "chunk_data = 1", "def f(misc): ..."):
        assert badly_named(parse("backend/turns/domain/a.py", text))
    assert badly_named(parse("backend/turns/domain/text_utils.py", ""))
    assert not badly_named(parse("backend/turns/domain/a.py", "def document(metadata): ...\nundo = 1"))
    assert badly_named(parse("backend/turns/domain/a.py", "data = 1"))
    assert not badly_named(parse("backend/turns/http/a.py", "data = 1"))
