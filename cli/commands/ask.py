"""`ballast ask`: ask a question, and see the answer as it comes with the documents that it cites."""

import asyncio
from collections.abc import Sequence
from typing import TypedDict, Unpack

import click

from cli.advice import ExitCode, advice_to_analyst
from cli.answers import Answer, text_at
from cli.api import Api, segment
from cli.asking import HeardAnswer, fault_of, footnotes_of, kinds_of, request_of
from cli.bases import resolve_base
from cli.connection import keep_answer, last_answer
from cli.failures import CommandFailed, RequestRefused
from cli.running import Run, runs

_ATTEMPTS = 4
_PAUSE_SECONDS = 0.5
_CANCEL_SECONDS = 3.0


class AskOptions(TypedDict):
    """The options of `ballast ask`, but for `--json`."""

    names: tuple[str, ...]
    model: str | None
    goes_on: bool
    after: str | None


@click.command()
@click.argument("question")
@click.option("--base", "names", multiple=True, metavar="NAME", help="Base to search, by name or id. [BALLAST_BASE]")
@click.option("--agent", "--model", "model", metavar="NAME", help="Agent or model that answers.")
@click.option("--continue", "goes_on", is_flag=True, help="Go on from the last answer that this command has shown.")
@click.option("--after", metavar="RESPONSE", help="Go on from this response.")
@runs
async def ask(run: Run, question: str, **options: Unpack[AskOptions]) -> None:
    """Ask a question and stream the answer; Ctrl-C stops it."""
    if not question.strip():
        raise CommandFailed(
            "The question is empty.", ExitCode.WRONG_USE, "say what you want to know, in quotation marks"
        )
    heard = HeardAnswer()
    async with Api(run.connection) as api:
        bases = await _bases(run, api, options)
        request = _request(run, question, bases, options)
        try:
            await _hear(run, api, request, heard)
        except asyncio.CancelledError:
            await _cancel(run, api, heard)
            raise
    _tell_end(run, heard, [text_at(base, "name") for base in bases if base.get("role") == "restricted_analyst"])


async def _bases(run: Run, api: Api, options: AskOptions) -> list[Answer]:
    goes_on = options["goes_on"] or options["after"] is not None
    names = options["names"] or (() if goes_on or options["model"] else run.connection.bases)
    return [await resolve_base(api, name) for name in names]


def _request(run: Run, question: str, bases: Sequence[Answer], options: AskOptions) -> Answer:
    previous = options["after"] or (last_answer(run.connection) if options["goes_on"] else None)
    return request_of(question, [text_at(base, "id") for base in bases], options["model"], previous)


async def _hear(run: Run, api: Api, request: Answer, heard: HeardAnswer) -> None:
    """Show the answer as it comes; a connection that breaks is opened again where it broke."""
    await _follow(run, api, ("POST", "/v1/responses", request), heard)
    for attempt in range(_ATTEMPTS):
        if heard.is_over or not heard.response_id:
            return
        await asyncio.sleep(_PAUSE_SECONDS * attempt)
        path = f"/v1/responses/{segment(heard.response_id)}?stream=true&starting_after={heard.last_number}"
        await _follow(run, api, ("GET", path, None), heard)


async def _follow(run: Run, api: Api, call: tuple[str, str, Answer | None], heard: HeardAnswer) -> None:
    try:
        async for event in api.events(*call):
            is_first = not heard.response_id
            words = heard.take(event)
            if is_first and heard.response_id:
                keep_answer(run.connection, heard.response_id)
            if not run.terminal.is_json:
                run.terminal.piece(words)
    except RequestRefused:
        raise
    except CommandFailed:
        if not heard.response_id:
            raise


async def _cancel(run: Run, api: Api, heard: HeardAnswer) -> None:
    """Stop the turn, which would go on without a reader."""
    if not heard.response_id or heard.is_over:
        return
    try:
        async with asyncio.timeout(_CANCEL_SECONDS):
            await api.call("POST", f"/v1/responses/{segment(heard.response_id)}/cancel")
    except (CommandFailed, TimeoutError):
        run.terminal.note("\nThe answer could not be stopped; it goes on without you.")


def _tell_end(run: Run, heard: HeardAnswer, restricted: Sequence[str]) -> None:
    if run.terminal.is_json:
        run.terminal.json(heard.response)
    else:
        run.terminal.line()
        if footnotes := footnotes_of(heard.response):
            run.terminal.line()
            for line in footnotes:
                run.terminal.line(line, "dim")
    if not heard.is_over:
        mend = f"`ballast ask --after {heard.response_id} …` goes on once it has ended"
        raise CommandFailed("The connection broke before the end of the answer.", ExitCode.UNREACHABLE, mend)
    if fault := fault_of(heard):
        raise CommandFailed(fault, ExitCode.PARTLY_FAILED, kinds=kinds_of(heard))
    for name in () if run.terminal.is_json else restricted:
        run.terminal.note(advice_to_analyst(name), "dim")
