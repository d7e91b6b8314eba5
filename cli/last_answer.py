"""The id of the last answer that this machine has shown, for `--continue` and `ballast prompts`."""

from cli.connection import Connection
from cli.exit_codes import ExitCode
from cli.failures import CommandFailed


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
