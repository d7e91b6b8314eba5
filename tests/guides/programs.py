"""The programs of the machine that readers of the documentation are asked to have."""

import shutil

_NEEDED = ("bash", "curl", "jq")


def missing_programs() -> list[str]:
    """Return those that are not here."""
    return [name for name in _NEEDED if shutil.which(name) is None]
