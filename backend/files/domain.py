"""Uploaded files, and pages of them."""

from datetime import datetime
from enum import StrEnum

from backend.foundation.domain.paging import PageQuery
from shared.errors import InvalidRequest, UnsupportedValue
from shared.models.values import Value

MAX_FILENAME_CHARACTERS = 255
"""The limit of the usual file systems; a document of the same name then has room for a number in its name."""

MAX_BYTES_OF_USER = 4 * 1024**3
"""How many bytes one user's files may have together."""


class FilePurpose(StrEnum):
    """What a file is for; OpenAI's other purposes name services that do not exist here."""

    ASSISTANTS = "assistants"
    FOR_USERS = "user_data"


class StoredFile(Value):
    """A file as its owner uploaded it; `content_type` is what the upload named, which may be nothing.

    `sha256` is the digest of its bytes in hexadecimal digits.
    """

    id: str
    tenant: str
    user_id: str
    filename: str
    purpose: FilePurpose
    content_type: str | None
    size_bytes: int
    sha256: str
    created_at: datetime


class FileQuery(Value):
    """The request for a page of one user's files, by age; without `purpose` files of every purpose."""

    tenant: str
    user_id: str
    page: PageQuery
    purpose: str | None = None


def purpose_of(given: str | None) -> FilePurpose:
    """Return the purpose that an upload names.

    Raises:
        InvalidRequest: it names none.
        UnsupportedValue: it names another than those of `FilePurpose`.
    """
    supported = " or ".join(f"'{purpose}'" for purpose in FilePurpose)
    if not given:
        raise InvalidRequest(f"The form lacks the field 'purpose': send {supported}.", param="purpose")
    try:
        return FilePurpose(given)
    except ValueError:
        raise UnsupportedValue(f"This purpose is not supported; send {supported}.", param="purpose") from None


def check_filename(name: str) -> None:
    """Check the name of an uploaded file.

    Raises:
        InvalidRequest: it is empty, too long, or holds characters that cannot be shown.
    """
    if not name or len(name) > MAX_FILENAME_CHARACTERS or not name.isprintable() or name != name.strip():
        raise InvalidRequest(
            f"The name of a file is 1 to {MAX_FILENAME_CHARACTERS} printable characters without blanks around them.",
            param="file",
        )
