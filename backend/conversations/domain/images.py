"""Check the URLs of images: an http(s) URL, or a data URL that contains the image."""

import re
from string import ascii_letters, digits

from shared.outgoing import is_web_address

DATA_URL = re.compile(r"data:image/[a-z0-9.+-]+;base64,", re.IGNORECASE)
_ALPHABET = f"{ascii_letters}{digits}+/".encode()
_GROUP_CHARACTERS = 4
_SLICE_CHARACTERS = 2**18


def check_image_url(url: str) -> None:
    """Check the URL of an image.

    Raises:
        ValueError: it is neither an http(s) URL with a host nor a base64 data URL of an image.
    """
    head = DATA_URL.match(url)
    if head is not None:
        _check_base64(url, head.end())
    elif not is_web_address(url) or any(character.isspace() for character in url):
        raise ValueError("must be an http(s) address or a data:image/…;base64 address")


def _check_base64(url: str, start: int) -> None:
    """Check the characters and the length (RFC 4648, section 4); to decode megabytes would take five times as long."""
    count = len(url) - start
    end = len(url) - (2 if url.endswith("==") else url.endswith("="))
    is_whole = count > 0 and count % _GROUP_CHARACTERS == 0
    starts = range(start, end, _SLICE_CHARACTERS)
    if not is_whole or any(_has_strange(url[at : min(at + _SLICE_CHARACTERS, end)]) for at in starts):
        raise ValueError("the data address holds no valid base64")


def _has_strange(text: str) -> bool:
    return bool(text.encode("utf-8", "surrogatepass").translate(None, _ALPHABET))
