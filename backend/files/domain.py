"""Uploaded files, and pages of them."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from backend.foundation.domain.paging import PageQuery
from shared.errors import InvalidRequest, PayloadTooLarge, UnsupportedValue
from shared.models.values import Value

MAX_FILENAME_CHARACTERS = 255
"""The limit of the usual file systems; a document of the same name then has room for a number in its name."""

MAX_BYTES_OF_USER = 4 * 1024**3
"""How many bytes one user's files may have together."""

MAX_FILES_OF_USER = 10_000
"""How many files one user may have, unless the operator sets another number."""


class FileQuota(NamedTuple):
    """What one user's files may be together."""

    files: int = MAX_FILES_OF_USER
    size_bytes: int = MAX_BYTES_OF_USER

    def check(self, files: int, size_bytes: int, new_bytes: int) -> None:
        """Check whether a user who has so many files and bytes may have one file more.

        Raises:
            PayloadTooLarge: the user would have too many files, or too many bytes in files.
        """
        if files >= self.files:
            raise PayloadTooLarge(
                f"You have {files} files, and may have no more than {self.files}: delete some first.", param="file"
            )
        if size_bytes + new_bytes > self.size_bytes:
            raise PayloadTooLarge(
                f"Your files would have more than {self.size_bytes} bytes together: delete some first.", param="file"
            )


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
