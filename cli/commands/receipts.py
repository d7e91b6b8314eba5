"""`ballast receipts`: the signed records of answers to restricted members, for administrators and auditors."""

from pathlib import Path

import click
import orjson

from cli.advice import ExitCode
from cli.answers import Answer, text_at
from cli.api import Api, segment
from cli.bases import BASES, base_id_of
from cli.failures import CommandFailed
from cli.running import Run, runs, show_list
from shared.receipts import BrokenChain, SealedReceipt, verify_chain

_PATH = "/v1/audit/receipts"
_COLUMNS = ("number", "recorded_at", "turn_id", "conversation_id", "user_hash", "bits")


@click.group()
def receipts() -> None:
    """Receipts of released answers: export and verify them, and find the answers that rest on a document."""


@receipts.command("export")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path))
@runs
async def export_receipts(run: Run, file: Path) -> None:
    """Write all receipts to FILE, and show the public key that verifies them."""
    async with Api(run.connection) as api:
        with file.open("wb") as out:
            count = 0
            async for item in api.items(_PATH):
                out.write(_seal(item).line + b"\n")
                count += 1
            end = await api.call("GET", f"{_PATH}/end")
            out.write(_seal(end).line + b"\n")
    run.terminal.line(f"{count} receipts. Public key: {text_at(end, 'public_key')}")


@receipts.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", required=True, help="The public key, which `export` shows.")
@runs
async def verify_receipts(run: Run, file: Path, key: str) -> None:
    """Find out without any service whether a receipt in FILE was changed or is missing."""
    try:
        with file.open("rb") as lines:
            count = verify_chain(lines, key)
    except BrokenChain as fault:
        raise CommandFailed(
            f"The receipts are not whole: {fault}.", ExitCode.PARTLY_FAILED, "compare with an earlier export"
        ) from None
    run.terminal.line(f"The {count} receipts are whole.")


@receipts.command("of-document")
@click.argument("base")
@click.argument("name", required=False)
@runs
async def show_receipts_of_document(run: Run, base: str, name: str | None) -> None:
    """Show the answers that rest on a document: BASE NAME, or its id alone, also where it is deleted."""
    async with Api(run.connection) as api:
        document_id = base if name is None else await _document_id_of(api, base, name)
        rows = (orjson.loads(text_at(item, "body")) async for item in api.items(_PATH, {"document_id": document_id}))
        await show_list(run, rows, _COLUMNS)


async def _document_id_of(api: Api, base: str, name: str) -> str:
    async for document in api.items(f"{BASES}/{segment(await base_id_of(api, base))}/documents"):
        if text_at(document, "name") == name:
            return text_at(document, "id")
    mend = "name one that is deleted by its id, which the audit shows: `ballast receipts of-document ID`"
    raise CommandFailed(f'There is no document "{name}" in the base "{base}".', ExitCode.NOT_FOUND, mend)


def _seal(item: Answer) -> SealedReceipt:
    return SealedReceipt(text_at(item, "body"), text_at(item, "signature"))
