"""The version of the gate: a digest of all the code and lists that judge."""

from hashlib import sha256
from pathlib import Path

import shared

_SHARED = Path(shared.__file__).parent
_JUDGING = (
    Path(__file__).parent,
    _SHARED / "disclosure",
    _SHARED / "plain_text",
    _SHARED / "models" / "safe_summary.py",
)
_ENDINGS = {".py", ".txt", ".toml"}
_DIGEST_CHARACTERS = 16


def _version() -> str:
    digest = sha256()
    found = (file for place in _JUDGING for file in ([place] if place.is_file() else sorted(place.rglob("*"))))
    for file in found:
        if file.suffix in _ENDINGS:
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


GATE_VERSION = _version()
"""Summaries that another version released are not used again."""
