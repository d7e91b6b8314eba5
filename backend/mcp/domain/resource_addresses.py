"""The addresses of documents as resources, and where the next page of a list of documents begins."""

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from shared.errors import InvalidRequest

SCHEME = "ballast"
AUTHORITY = "knowledge_bases"
TEMPLATE = f"{SCHEME}://{AUTHORITY}/{{knowledge_base_id}}/documents/{{document}}"
PAGED_TEMPLATE = f"{TEMPLATE}{{?offset,limit}}"
"""RFC 6570 templates of the addresses of a document and of a page of its text."""

MAX_ADDRESS_CHARACTERS = 16_384
"""Longer ones are refused unread: a name has up to 512 characters, of which quoting makes at most twelve each."""

_DOCUMENTS = "documents"
_PAGE_FIELDS = ("offset", "limit")
_LONGEST_NUMBER = 9
_SEPARATOR = "/"


class DocumentAddress(NamedTuple):
    """A document, by name or id, and the page of its text that is wanted; None leaves the bound to the service."""

    knowledge_base_id: str
    document: str
    offset: int = 0
    limit: int | None = None


class ListPlace(NamedTuple):
    """The document, and its base, behind which the next page of a list over several bases begins."""

    knowledge_base_id: str
    document_id: str


def address_of(knowledge_base_id: str, document_name: str) -> str:
    """Return the address of a document."""
    return f"{SCHEME}://{AUTHORITY}/{quote(knowledge_base_id, safe='')}/{_DOCUMENTS}/{quote(document_name, safe='')}"


def read_address(uri: str) -> DocumentAddress:
    """Read an address.

    Raises:
        InvalidRequest: it is no address of a document; `param` is `uri`.
    """
    if len(uri) > MAX_ADDRESS_CHARACTERS:
        raise InvalidRequest(f"uri: must have at most {MAX_ADDRESS_CHARACTERS} characters", param="uri")
    try:
        parts = urlsplit(uri)
        _, base_id, kind, document = parts.path.split("/")
        page = _page_in(parts.query)
    except ValueError:
        raise _refusal() from None
    is_ours = (parts.scheme, parts.netloc, kind) == (SCHEME, AUTHORITY, _DOCUMENTS)
    if not is_ours or not base_id or not document:
        raise _refusal()
    return DocumentAddress(unquote(base_id), unquote(document), page.get("offset", 0), page.get("limit"))


def cursor_of(place: ListPlace) -> str:
    """Return the cursor of a place in a list."""
    return _SEPARATOR.join(place)


def read_cursor(cursor: str) -> ListPlace:
    """Read a cursor.

    Raises:
        InvalidRequest: it is none of ours; `param` is `cursor`.
    """
    base_id, separator, document_id = cursor.partition(_SEPARATOR)
    if len(cursor) > MAX_ADDRESS_CHARACTERS or not separator or not base_id or not document_id:
        raise InvalidRequest("cursor: must be a cursor that an earlier page named", param="cursor")
    return ListPlace(base_id, document_id)


def _page_in(query: str) -> dict[str, int]:
    """Read the fields of a page.

    Raises:
        ValueError: a field is unknown, or no whole number.
    """
    fields = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    if any(name not in _PAGE_FIELDS or not value.isdecimal() or len(value) > _LONGEST_NUMBER for name, value in fields):
        raise ValueError(query)
    return {name: int(value) for name, value in fields}


def _refusal() -> InvalidRequest:
    return InvalidRequest(f"uri: must be an address of a document, {PAGED_TEMPLATE}", param="uri")
