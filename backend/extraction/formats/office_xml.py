"""Parts of office documents (ECMA-376) as XML: names, relationships between parts, and parts that are damaged.

Names are written with the prefixes that the standard uses, such as `w:p`; those of its strict form, which has other
namespaces, read the same.
"""

import posixpath
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import IO, NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring, iterparse
from zipfile import BadZipFile, ZipFile

_STANDARD = "http://schemas.openxmlformats.org/"
_STRICT = "http://purl.oclc.org/ooxml/"
_PREFIXES = {
    f"{_STANDARD}wordprocessingml/2006/main": "w:",
    f"{_STRICT}wordprocessingml/main": "w:",
    f"{_STANDARD}officeDocument/2006/math": "m:",
    f"{_STRICT}officeDocument/math": "m:",
    f"{_STANDARD}officeDocument/2006/relationships": "r:",
    f"{_STRICT}officeDocument/relationships": "r:",
    f"{_STANDARD}drawingml/2006/main": "a:",
    f"{_STRICT}drawingml/main": "a:",
    f"{_STANDARD}drawingml/2006/chart": "c:",
    f"{_STRICT}drawingml/chart": "c:",
    f"{_STANDARD}drawingml/2006/diagram": "dgm:",
    f"{_STRICT}drawingml/diagram": "dgm:",
    f"{_STANDARD}drawingml/2006/picture": "pic:",
    f"{_STRICT}drawingml/picture": "pic:",
    f"{_STANDARD}markup-compatibility/2006": "mc:",
    "urn:schemas-microsoft-com:vml": "v:",
    "urn:oasis:names:tc:opendocument:xmlns:office:1.0": "office:",
    "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text:",
    "urn:oasis:names:tc:opendocument:xmlns:table:1.0": "table:",
    "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0": "draw:",
    "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0": "presentation:",
    "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0": "svg:",
    "urn:oasis:names:tc:opendocument:xmlns:style:1.0": "style:",
}
DAMAGED = (ParseError, BadZipFile, KeyError, LookupError, OSError, RuntimeError, ValueError, zlib.error)
"""What a part raises that is damaged or not there."""


@lru_cache(4096)
def name_of(tag: str) -> str:
    """Return `w:p` for `{namespace of w}p`, and the bare name where the namespace is none of those above."""
    namespace, _, local = tag.removeprefix("{").rpartition("}")
    return _PREFIXES.get(namespace, "") + local


def is_named(element: Element, name: str) -> bool:
    """Say whether this is an element of that name."""
    return name_of(element.tag) == name


def children_of(element: Element | None, *names: str) -> Iterator[Element]:
    """Yield the children with one of the names."""
    return (child for child in (element if element is not None else ()) if name_of(child.tag) in names)


def first_child(element: Element | None, *path: str) -> Element | None:
    """Return the first child of the first name, and so on down the path."""
    for name in path:
        element = next(children_of(element, name), None)
    return element


def value(element: Element | None, name: str = "w:val") -> str | None:
    """Return an attribute, with or without the prefix of its namespace."""
    if element is None:
        return None
    local = name.rpartition(":")[2]
    return next((found for key, found in element.attrib.items() if name_of(key) in (name, local)), None)


def is_on(element: Element | None) -> bool:
    """Say whether a property is set: it is there, and its value is none that turns it off."""
    return element is not None and value(element) not in ("0", "false", "off", "none")


def parse_part(body: bytes) -> Element | None:
    """Return the root of a part; None where it is damaged."""
    try:
        return fromstring(body)  # noqa: S314 (a part with a DTD was refused)
    except DAMAGED:
        return None


class Relationship(NamedTuple):
    """What a part refers to: the last word of its type, and the name of the part."""

    kind: str
    part: str


class Package:
    """The parts of one document."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._names = {name.lower().lstrip("/"): name for name in archive.namelist()}

    def open(self, part: str) -> IO[bytes]:
        """Open a part; names differ in case between programs."""
        return self._archive.open(self._names[part.lower()])

    def read_bytes(self, part: str) -> bytes:
        """Return the content of a part.

        Raises:
            KeyError: it is not there.
        """
        with self.open(part) as file:
            return file.read()

    def read(self, part: str | None) -> Element | None:
        """Return the root of a part; None where it is not there, or damaged."""
        if part is None:
            return None
        try:
            return parse_part(self.read_bytes(part))
        except DAMAGED:
            return None

    def relationships(self, part: str) -> Mapping[str, Relationship]:
        """Return what a part refers to, by the ids that it uses for them; the part "" is the package."""
        folder, name = posixpath.split(part)
        root = self.read(posixpath.join(folder, "_rels", f"{name}.rels"))
        return {
            each.get("Id", ""): Relationship(
                each.get("Type", "").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/"),
            )
            for each in (root if root is not None else ())
            if each.get("TargetMode") != "External"
        }


def find_part(related: Mapping[str, Relationship], kind: str) -> str | None:
    """Return the part that is referred to as such a kind."""
    return next((each.part for each in related.values() if each.kind == kind), None)


def stream_children(file: IO[bytes], name: str) -> Iterator[Element]:
    """Yield the children of the elements with this name as they are read, so that only one of them is held at a time.

    Raises:
        ParseError: the XML is malformed from here on.
    """
    above = list[Element]()
    for event, element in iterparse(file, ("start", "end")):  # noqa: S314 (a part with a DTD was refused)
        if event == "start":
            above.append(element)
            continue
        above.pop()
        if above and is_named(above[-1], name):
            yield element
            above[-1].clear()
