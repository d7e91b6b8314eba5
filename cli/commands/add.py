"""`ballast add`: bring a base up to date with a folder, once or as long as it changes."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import click

from cli.advice import ExitCode
from cli.api import Api
from cli.bases import find_or_make, progress_of, question_about
from cli.failures import CommandFailed
from cli.running import Run, Work, make_sure, name_command, runs, yes_option
from cli.terminal import say_count
from cli.uploads import (
    LocalFile,
    Report,
    UploadedFile,
    Uploads,
    UploadState,
    digests_of,
    endings_of,
    files_below,
    is_excluded,
    remove_documents,
)

LOOK_SECONDS = 2.0
_NOT_THERE = (UploadState.FAILED, UploadState.SKIPPED, UploadState.REMOVED)
_SHOWN_WHERE_THERE_ARE_ANY = (UploadState.SKIPPED, UploadState.REMOVED)


class AddOptions(TypedDict):
    """The options of `ballast add`, but for the base and `--json`."""

    excluded: tuple[str, ...]
    prune: bool
    watch: bool
    yes: bool


@click.command()
@click.argument("place", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option("--base", "name", metavar="NAME", help="Name or id of the base; made if there is none. [BALLAST_BASE]")
@click.option("--exclude", "excluded", multiple=True, metavar="PATTERN", help="Leave out: drafts, *.log, a/*.md.")
@click.option("--prune", is_flag=True, help="Remove the documents of files that are gone, after showing them.")
@click.option("--watch", is_flag=True, help="Go on, and follow the changes of the folder until Ctrl-C.")
@yes_option
@runs
def add(run: Run, place: Path, name: str | None, **options: Unpack[AddOptions]) -> Work:
    """Upload what has changed in a folder, or a file, into a knowledge base.

    A run that was broken off goes on when the same command is given again: nothing is uploaded twice.
    """
    base = name or next(iter(run.connection.bases), "")
    if not name and base:
        run.terminal.note(f'They go into "{base}", which BALLAST_BASE names; --base names another one.')
    if not base:
        raise CommandFailed("Into which base?", ExitCode.WRONG_USE, "add --base with a name of your choice")
    if options["prune"] and place.is_file():
        raise CommandFailed(
            "Only a folder can be pruned by.", ExitCode.WRONG_USE, "name the folder, or leave out --prune"
        )
    if options["prune"] and options["watch"]:
        make_sure("Remove the document of each file that goes, without asking again?", yes=options["yes"])
        options["yes"] = True
    files_below(place, options["excluded"])
    return keep_in_step(run, place, base, options)


async def keep_in_step(
    run: Run, place: Path, name: str, options: AddOptions, look_seconds: float = LOOK_SECONDS
) -> None:
    """Bring a base up to date with a folder, once or until it is cancelled."""
    async with Api(run.connection) as api:
        base_id, is_new = await find_or_make(api, name)
        if is_new:
            run.terminal.note(f'Made the base "{name}" ({base_id}).')
        seen: Mapping[str, object] = {}
        while True:
            files, seen = await _find_changed(place, options, seen, look_seconds)
            try:
                told = await _bring_up_to_date(run, api, base_id, files, options)
                failure = await _tell_end(run, api, (base_id, name), told)
            except CommandFailed as failed:
                failure, seen = failed, {}
            if not options["watch"]:
                if failure is not None:
                    raise failure
                return
            if failure is not None:
                run.terminal.note(failure.message, "red")
                await asyncio.sleep(look_seconds)


async def _find_changed(
    place: Path, options: AddOptions, seen: Mapping[str, object], look_seconds: float
) -> tuple[list[LocalFile], Mapping[str, object]]:
    """Wait until the files are not as they were seen, and have stayed so for a look; return them."""
    before: Mapping[str, object] = {}
    while True:
        files = await asyncio.to_thread(files_below, place, options["excluded"])
        there = {file.name: file.state() for file in files}
        if there != seen and (not seen or there == before):
            return files, there
        before = there
        await asyncio.sleep(look_seconds)


async def _bring_up_to_date(
    run: Run, api: Api, base_id: str, files: Sequence[LocalFile], options: AddOptions
) -> Sequence[UploadedFile]:
    told: list[UploadedFile] = []
    known = await digests_of(api, base_id)
    with run.terminal.progress() as bar:
        task = bar.add_task("Uploading", total=len(files))

        def report(file: UploadedFile) -> None:
            told.append(file)
            bar.advance(task)
            _tell(run, file)

        try:
            await Uploads(api, base_id, known, report).run(files)
        except asyncio.CancelledError:
            run.terminal.note(f"Stopped after {len(told)} of {len(files)} files. The same command goes on from here.")
            raise
    if options["prune"]:
        gone = known.keys() - {file.name for file in files}
        meant = sorted(name for name in gone if not is_excluded(name, options["excluded"]))
        await _prune(run, api, base_id, meant, report, yes=options["yes"])
    return told


def _tell(run: Run, file: UploadedFile) -> None:
    if run.terminal.is_json:
        run.terminal.json(file.show())
    elif file.state is UploadState.FAILED:
        run.terminal.note(f"{file.name}: {file.reason}", "red")
    else:
        for note in file.notes:
            run.terminal.note(f"{file.name}: {note}")


async def _prune(run: Run, api: Api, base_id: str, gone: Sequence[str], report: Report, *, yes: bool) -> None:
    """Remove what has no file any more, as soon as somebody has seen the list and agreed."""
    if gone:
        run.terminal.note("Documents whose files are gone:")
        for name in gone:
            run.terminal.note(f"  {name}")
        make_sure(f"Remove these {len(gone)} documents?", yes=yes)
        await remove_documents(api, base_id, gone, report)


async def _tell_end(run: Run, api: Api, base: tuple[str, str], told: Sequence[UploadedFile]) -> CommandFailed | None:
    """Say what became of the files; return what a run has failed in, if it has."""
    base_id, name = base
    counts = {state: sum(file.state is state for file in told) for state in UploadState}
    ready = sorted(file.name for file in told if file.state not in _NOT_THERE)
    question = await question_about(api, base_id, ready[0]) if ready else None
    if run.terminal.is_json:
        counted = {str(state): count for state, count in counts.items()}
        summary = {"object": "summary", "knowledge_base_id": base_id, **counted, "question": question}
        run.terminal.json(summary)
    else:
        shown = {state: count for state, count in counts.items() if count or state not in _SHOWN_WHERE_THERE_ARE_ANY}
        run.terminal.line(", ".join(f"{count} {state}" for state, count in shown.items()))
        if skipped := [file for file in told if file.state is UploadState.SKIPPED]:
            files = say_count(len(skipped), "file", "files")
            run.terminal.line(f"{files} of kinds that are not read: {', '.join(endings_of(skipped))}")
        if ready:
            run.terminal.line(await progress_of(api, base_id))
        if question is not None:
            run.terminal.line(f"Try: {name_command()} ask --base {shlex.quote(name)} {shlex.quote(question)}")
    if not counts[UploadState.FAILED]:
        return None
    message = f"{counts[UploadState.FAILED]} of {len(told)} files could not be read; {len(ready)} are in the base."
    return CommandFailed(message, ExitCode.PARTLY_FAILED)
