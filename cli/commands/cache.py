"""`ballast cache`: what models were sent, as a log, and whether each call of a log begins with the one before."""

import json
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from cli.advice import ExitCode
from cli.answers import Answer, number_at, objects_at, part_at, text_at, text_of_message
from cli.api import Api, segment
from cli.cache.check import Difference, Report, Verdict, check
from cli.cache.entries import Log, NoLog
from cli.failures import CommandFailed
from cli.running import Run, runs
from cli.terminal import Terminal, say_count

_OURS: Final = frozenset({"kind", "position", "tokens", "reused"})
_TOLD: Final = ("id", "model", "created_at", "usage")
_MEND: Final = (
    "give a log with one request a line; vLLM writes them with --enable-log-requests and VLLM_LOGGING_LEVEL=DEBUG, "
    "LiteLLM without turn_off_message_logging"
)
_TRACED: Final = (
    "Numbers of blocks cannot show a beginning that has moved: such a call looks like a new conversation, and one below"
    " two blocks like a part of any that shares the first. Verify the form openai."
)
_BLOCK_TOKENS: Final = 512
_BYTES_A_TOKEN: Final = 4
"""Estimated, as everywhere before a provider has counted."""


@click.group()
def cache() -> None:
    """What a provider's cache can read again: export what models were sent, and check any request log."""


@cache.command()
@click.argument("conversation", required=False)
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Leave out what is older than this day (UTC).")
@click.option("--form", type=click.Choice(["openai", "folded", "mooncake"]), default="openai", show_default=True)
@runs
async def export(run: Run, conversation: str | None, since: datetime | None, form: str) -> None:
    """Write each model call of a conversation, or of all that your key may read, as a line of JSON, by their time.

    openai has the body that was sent; folded puts tool calls and parts into the text of messages, for judges that read
    nothing else; mooncake has lengths and numbers of equal blocks, and no word of the content.
    """
    write = _Blocks().trace if form == "mooncake" else _FORMS[form]
    earliest = since.replace(tzinfo=UTC).timestamp() if since else 0
    async with Api(run.connection) as api:
        responses = [
            (name, response)
            async for name in _conversations(api, conversation)
            for response in await _responses(api, name)
            if number_at(response, "created_at") >= earliest
        ]
        for name, response in sorted(responses, key=lambda found: number_at(found[1], "created_at")):
            for call in await _calls(api, name, response):
                run.terminal.json(write(call))


@cache.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@runs
async def verify(run: Run, log: Path) -> None:
    """Check a request log, or standard input (-): does each call begin with all of the call before it?

    It needs no server.

    Read are exports of this command, logs of gateways such as LiteLLM (JSON lines), vLLM's request log, and traces in
    mooncake's form. Exits with 1 where a call differs.
    """
    try:
        with _readable(log) as path:
            report = check(Log(path))
    except NoLog as wrong:
        raise CommandFailed(str(wrong), ExitCode.WRONG_USE, _MEND) from None
    if not report.calls:
        raise CommandFailed(f"No request is found in {log}.", ExitCode.WRONG_USE, _MEND)
    _show(run.terminal, report)
    if report.paths:
        message = (
            say_count(report.paths.total(), "call differs", "calls differ") + " from one that they should begin with."
        )
        raise CommandFailed(
            message, ExitCode.PARTLY_FAILED, "keep what moves out of the beginning: docs/prompt-cache.md"
        )


@contextmanager
def _readable(log: Path) -> Generator[Path]:
    """Keep standard input in a file for a while: entries are read twice."""
    if str(log) != "-":
        yield log
        return
    with tempfile.NamedTemporaryFile() as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield Path(file.name)


def _show(terminal: Terminal, report: Report) -> None:
    if terminal.is_json:
        examples = {path: [asdict(each) for each in found] for path, found in report.examples.items()}
        share = None if report.kept_share is None else round(report.kept_share, 4)
        terminal.json({**vars(report), "examples": examples, "kept_share": share})
        return
    calls, conversations = report.calls.total(), report.conversations
    said = f"{say_count(calls, 'call', 'calls')} in {say_count(conversations, 'conversation', 'conversations')}"
    terminal.line(said, "bold")
    for line, style in _counts(report):
        terminal.line(line, style)
    for path, count in report.paths.most_common():
        terminal.line(f"\n{path}: {say_count(count, 'time', 'times')}", "bold")
        for each in report.examples[path]:
            _show_difference(terminal, each)


def _counts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what the calls do, and how to show it, as far as there is something to say."""
    calls = report.calls
    yield f"{say_count(calls[Verdict.EXTENDS], 'begins', 'begin')} with all of the call before", ""
    if branches := calls[Verdict.BRANCHES]:
        begin = say_count(branches, "begins", "begin")
        yield f"{begin} with an earlier call, or asks anew what the newest asked: a branch", ""
    for reset, count in report.resets.most_common():
        yield f"{say_count(count, 'says', 'say')} that a new prefix begins: {reset}", ""
    yield say_count(calls[Verdict.DIFFERS], "differs", "differ"), "red" if calls[Verdict.DIFFERS] else ""
    if report.moved:
        begin = say_count(report.moved, "conversation begins", "conversations begin")
        yield f"{begin} with other tools or instructions than the one before, though they are alike", "red"
    if report.kept_share is not None:
        yield f"{report.kept_share:.1%} of what had been sent before stands at the beginning of the next call", ""
    if report.passed_over:
        yield f"{say_count(report.passed_over, 'line holds', 'lines hold')} no request that can be compared", ""
    if report.traced:
        yield _TRACED, "red"


def _show_difference(terminal: Terminal, found: Difference) -> None:
    at = "" if found.character is None else f", character {found.character}"
    terminal.line(f"  line {found.line} against line {found.earlier_line}: {found.path}{at}: {found.says}")
    terminal.line(f"    before: {found.before!r}", "dim")
    terminal.line(f"    now:    {found.now!r}", "dim")


async def _conversations(api: Api, conversation: str | None) -> AsyncGenerator[str]:
    if conversation:
        yield conversation
        return
    async for each in api.items("/v1/conversations"):
        yield text_at(each, "id")


async def _responses(api: Api, conversation: str) -> list[Answer]:
    items = api.items(f"/v1/conversations/{segment(conversation)}/items", {"include[]": "response_id", "order": "asc"})
    names = dict.fromkeys([text_at(each, "response_id") async for each in items])
    found = [await api.call("GET", f"/v1/responses/{segment(name)}") for name in names if name]
    return [{name: response.get(name) for name in _TOLD} for response in found]


async def _calls(api: Api, conversation: str, response: Answer) -> list[Answer]:
    prompts = await api.call("GET", f"/v1/responses/{segment(text_at(response, 'id'))}/prompts")
    lines = [_line(conversation, response, each) for each in objects_at(prompts, "data")]
    if lines:
        lines[-1]["output_tokens"] = part_at(response, "usage").get("output_tokens")
    return lines


def _line(conversation: str, response: Answer, call: Answer) -> Answer:
    """Return a call as a line of a log; a reset is declared by an epoch, or by a policy that moves messages."""
    messages = [
        {key: value for key, value in each.items() if key not in _OURS} for each in objects_at(call, "messages")
    ]
    return {
        "conversation": conversation,
        "request_id": f"{text_at(response, 'id')}/{text_at(call, 'call')}",
        "timestamp": number_at(response, "created_at"),
        "reset": call.get("epoch_reason") or ("policy" if call.get("shortfall") == "policy" else None),
        "model": response.get("model"),
        "messages": messages,
        "tools": call.get("tools"),
    }


def _fold(line: Answer) -> Answer:
    folded = [{"role": each.get("role"), "content": text_of_message(each)} for each in objects_at(line, "messages")]
    return {**line, "messages": folded}


_FORMS: Final[dict[str, Callable[[Answer], Answer]]] = {"openai": lambda line: line, "folded": _fold}


class _Blocks:
    """Numbers equal beginnings of calls block by block, as they come: the numbers tell nothing of the content."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._began: int | None = None

    def trace(self, line: Answer) -> Answer:
        """Return a call in mooncake's form: milliseconds since the first, its length and blocks in estimated tokens."""
        sent = json.dumps([line["tools"], line["messages"]], ensure_ascii=False).encode()
        size, before, hashes = _BLOCK_TOKENS * _BYTES_A_TOKEN, -1, list[int]()
        for start in range(0, len(sent), size):
            before = self._numbers.setdefault((before, sent[start : start + size]), len(self._numbers))
            hashes.append(before)
        length = len(sent) // _BYTES_A_TOKEN
        written = {"input_length": length, "output_length": number_at(line, "output_tokens"), "hash_ids": hashes}
        sent_at = number_at(line, "timestamp")
        self._began = sent_at if self._began is None else self._began
        return {"timestamp": (sent_at - self._began) * 1000, **written}
