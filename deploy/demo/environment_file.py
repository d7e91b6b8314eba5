"""The file with a demo's addresses and keys, which the command `ballast` reads in the folder of the demo by itself."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = "env"


def write_environment(file: Path, variables: Mapping[str, str]) -> None:
    """Write a line `NAME=value` for each variable, as a shell reads it, in place of what was there.

    Nobody but the owner can read it, because it holds keys.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as lines:
        lines.writelines(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
    new.replace(file)
