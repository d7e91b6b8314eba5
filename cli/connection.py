"""The address of the backend and the key to call it with, as the environment says, and the last answer from there."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import httpx2

from cli.advice import KEY_MEND, ExitCode
from cli.failures import CommandFailed
from shared.environment import WrongSetting, value_of, web_address

DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Connection:
    """What a command needs to reach the backend; `transport` is another one in tests."""

    url: str
    key: str
    bases: tuple[str, ...]
    state_folder: Path
    environ: Mapping[str, str]
    transport: httpx2.AsyncBaseTransport | None = None

    @property
    def answer_file(self) -> Path:
        """Where the id of the last answer is kept, for this address and key."""
        holder = sha256(f"{self.url}\n{self.key}".encode()).hexdigest()[:16]
        return self.state_folder / f"last-answer-{holder}"


def connection_of(environ: Mapping[str, str], transport: httpx2.AsyncBaseTransport | None = None) -> Connection:
    """Read `BALLAST_URL`, `BALLAST_KEY` and `BALLAST_BASE`, or the files that `BALLAST_KEY_FILE` and others name.

    Raises:
        CommandFailed: a value is wrong.
    """
    try:
        url = web_address(value_of("BALLAST_URL", environ).rstrip("/").removesuffix("/v1") or DEFAULT_URL)
        key = value_of("BALLAST_KEY", environ).strip()
    except WrongSetting as wrong:
        raise CommandFailed(str(wrong), ExitCode.WRONG_USE) from None
    except ValueError as wrong:
        raise CommandFailed(
            f"BALLAST_URL: {wrong}", ExitCode.WRONG_USE, f"write it as {DEFAULT_URL} is written"
        ) from None
    if not (key.isascii() and key.isprintable()):
        raise CommandFailed("BALLAST_KEY: holds characters that no key has", ExitCode.WRONG_USE, KEY_MEND)
    bases = tuple(name.strip() for name in environ.get("BALLAST_BASE", "").split(",") if name.strip())
    return Connection(url, key, bases, state_folder(environ), environ, transport)


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for state that the XDG specification names."""
    home = Path(environ.get("HOME") or ".")
    return Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "ballast"


def last_answer(connection: Connection) -> str:
    """Return the id of the last answer for this address and key.

    Raises:
        CommandFailed: there is none.
    """
    try:
        return connection.answer_file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        mend = "use `ballast ask` first, or name a response by its id"
        raise CommandFailed("There is no last answer.", ExitCode.WRONG_USE, mend) from None


def keep_answer(connection: Connection, response_id: str) -> None:
    """Keep an id; where nothing can be written, the answer stands all the same."""
    try:
        connection.answer_file.parent.mkdir(parents=True, exist_ok=True)
        connection.answer_file.write_text(response_id, encoding="ascii")
    except OSError:
        return
