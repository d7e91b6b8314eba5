"""Which browser drives the page."""

import os
import shutil
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NEEDED = "Chromium is needed, and there is none on this machine: apt-get install chromium, or name one with CHROMIUM=."


def chromium_path() -> str | None:
    """Return the path of the system's Chromium: what `CHROMIUM` names, else what is found; None where there is none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    return next((found for name in _NAMES if (found := shutil.which(name))), None)
