"""The programs of the machine that readers of the documentation are asked to have."""

import shutil

_NEEDED = ("bash", "curl", "jq")


def missing_programs() -> list[str]:
    """Return those that are not here."""
    return [name for name in _NEEDED if shutil.which(name) is None]


def not_run(missing: list[str]) -> str:
    """Say which tests are left out where some are missing."""
    return f"Not run: tests/guides, whose pages use {', '.join(missing)}, and this machine has none."
