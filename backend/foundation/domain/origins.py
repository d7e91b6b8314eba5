"""Origins of browser applications, as browsers write them (https://datatracker.ietf.org/doc/html/rfc6454#section-6)."""

from urllib.parse import urlsplit

ANY_ORIGIN = "*"
DEFAULT_PORTS = {"http": 80, "https": 443}
"""Ports that a browser leaves out."""


def check_origin(value: str) -> str:
    """Return an origin as browsers write it in `Origin`, or `*`, unchanged.

    Raises:
        ValueError: no browser sends such an origin, so that it would allow nothing.
    """
    if value == ANY_ORIGIN:
        return value
    if not _is_origin(value):
        example = "https://app.example.com or http://localhost:3000, without a path and in lower case"
        raise ValueError(f"{value!r} is no origin; write it such as {example}, or * for any")
    return value


def _is_origin(value: str) -> bool:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    shown_host = f"[{host}]" if ":" in host else host
    written = f"{parts.scheme}://{shown_host}" + (f":{port}" if port is not None else "")
    is_plain = value.isascii() and value.isprintable() and " " not in value and "*" not in value
    return is_plain and bool(host) and value == written and (port is None or DEFAULT_PORTS.get(parts.scheme) != port)
