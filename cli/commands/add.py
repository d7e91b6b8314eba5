"""`ballast add`: bring a base up to date with a folder."""

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from cli.api import Api
from cli.bases import find_or_make, progress_of, question_about
from cli.exit_codes import ExitCode
from cli.failures import CommandFailed
from cli.folder import LocalFile, files_below
from cli.running import Run, called_as, json_option, run_of
from cli.uploads import UploadedFile, Uploads, UploadState, digests_of


@click.command()
@click.argument("place", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option("--base", "name", metavar="NAME", help="Name or id of the base; made if there is none. [BALLAST_BASE]")
@json_option
@click.pass_context
def add(context: click.Context, place: Path, name: str | None, *, is_json: bool) -> None:
    """Upload what has changed in a folder, or a file, into a knowledge base.

    A run that was broken off goes on when the same command is given again: nothing is uploaded twice.
    """
    run = run_of(context, is_json=is_json)
    base = name or next(iter(run.connection.bases), "")
    if not base:
        raise CommandFailed("Into which base?", ExitCode.WRONG_USE, "add --base with a name of your choice")
    run.to_its_end(_add(run, files_below(place), base))


async def _add(run: Run, files: Sequence[LocalFile], name: str) -> None:
    async with Api(run.connection) as api:
        base_id, is_new = await find_or_make(api, name)
        if is_new:
            run.terminal.note(f'Made the base "{name}" ({base_id}).')
        added = await _upload(run, api, base_id, files)
        await _tell_end(run, api, (base_id, name), added)


async def _upload(run: Run, api: Api, base_id: str, files: Sequence[LocalFile]) -> Sequence[UploadedFile]:
    told: list[UploadedFile] = []
    with run.terminal.progress() as bar:
        task = bar.add_task("Uploading", total=len(files))

        def report(file: UploadedFile) -> None:
            told.append(file)
            bar.advance(task)
            if run.terminal.is_json:
                run.terminal.json(file.shown())
            elif file.state is UploadState.FAILED:
                run.terminal.note(f"{file.name}: {file.reason}", "red")

        try:
            await Uploads(api, base_id, await digests_of(api, base_id), report).run(files)
        except asyncio.CancelledError:
            run.terminal.note(f"Stopped after {len(told)} of {len(files)} files. The same command goes on from here.")
            raise
    return told


async def _tell_end(run: Run, api: Api, base: tuple[str, str], told: Sequence[UploadedFile]) -> None:
    base_id, name = base
    counts = {state: sum(file.state is state for file in told) for state in UploadState}
    ready = sorted(file.name for file in told if file.state is not UploadState.FAILED)
    question = await question_about(api, base_id, ready[0]) if ready else None
    if run.terminal.is_json:
        counted = {str(state): count for state, count in counts.items()}
        summary = {"object": "summary", "knowledge_base_id": base_id, **counted, "question": question}
        run.terminal.json(summary)
    else:
        run.terminal.line(", ".join(f"{count} {state}" for state, count in counts.items()))
        if ready:
            run.terminal.line(await progress_of(api, base_id))
        if question is not None:
            run.terminal.line(f"Try: {called_as()} ask --base {shlex.quote(name)} {shlex.quote(question)}")
    if counts[UploadState.FAILED]:
        rest = "the others are in the base" if ready else "the base has none of them"
        message = f"{counts[UploadState.FAILED]} of {len(told)} files could not be read; {rest}."
        raise CommandFailed(message, ExitCode.PARTLY_FAILED)
