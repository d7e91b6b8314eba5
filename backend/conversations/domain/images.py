"""Check the URLs of images: an http(s) URL, or a data URL that contains the image."""

import base64
import binascii
import re
from urllib.parse import urlsplit

DATA_URL = re.compile(r"data:image/[a-z0-9.+-]+;base64,", re.IGNORECASE)


def check_image_url(url: str) -> None:
    """Check the URL of an image.

    Raises:
        ValueError: it is neither an http(s) URL with a host nor a base64 data URL of an image.
    """
    head = DATA_URL.match(url)
    if head is not None:
        _check_base64(url[head.end() :])
    elif not _is_web_address(url):
        raise ValueError("must be an http(s) address or a data:image/…;base64 address")


def _check_base64(text: str) -> None:
    try:
        body = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        body = b""
    if not body:
        raise ValueError("the data address holds no valid base64")


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(c.isspace() for c in url)
