"""Secrets that are generated once and kept in files of their own."""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from shared.environment import value_of


def read_or_create(file: Path, make: Callable[[], str]) -> str:
    """Return the text of a file, which is created where it is missing, readable by its owner only."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as writer:
            writer.write(make())
    return file.read_text(encoding="ascii").strip()


def secret(environ: Mapping[str, str], name: str, directory: Path) -> str:
    """Return a secret from the environment, from the file it names, or a kept one.

    Raises:
        WrongSetting: its file cannot be read, or both the secret and a file are given.
    """
    return value_of(name, environ) or read_or_create(directory / name.lower(), new_secret)


def new_secret() -> str:
    """Make a secret of 256 random bits."""
    return secrets.token_urlsafe(32)
