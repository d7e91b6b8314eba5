"""`ballast prompts`: what the model was sent for a response, and what of it had been sent before."""

import json

import click

from cli.answers import Answer, number_at, objects_at, text_at
from cli.api import Api, segment
from cli.exit_codes import ExitCode
from cli.failures import CommandFailed
from cli.last_answer import last_answer
from cli.running import Run, json_option, run_of
from cli.terminal import Terminal

_SHOWN_CHARACTERS = 400


@click.command()
@click.argument("response", required=False)
@click.option("--whole", is_flag=True, help="Show long messages whole.")
@json_option
@click.pass_context
def prompts(context: click.Context, response: str | None, *, whole: bool, is_json: bool) -> None:
    """Show each model call of a response; without one named, of the last answer of `ballast ask`.

    A bar marks what the call before had sent already, byte for byte: a provider's cache can serve that part.
    """
    run = run_of(context, is_json=is_json)
    run.to_its_end(_prompts(run, response or last_answer(run.connection), whole=whole))


async def _prompts(run: Run, response: str, *, whole: bool) -> None:
    async with Api(run.connection) as api:
        found = await api.call("GET", f"/v1/responses/{segment(response)}/prompts")
    if run.terminal.is_json:
        run.terminal.json(found)
        return
    calls = objects_at(found, "data")
    if not calls:
        raise CommandFailed("This response has no model call that is kept.", ExitCode.NOT_FOUND)
    for call in calls:
        _show(run.terminal, call, whole=whole)


def _show(terminal: Terminal, call: Answer, *, whole: bool) -> None:
    messages = objects_at(call, "messages")
    tokens = sum(number_at(each, "tokens") for each in messages)
    reused = sum(number_at(each, "tokens") for each in messages if each.get("reused"))
    cached = call.get("cached_tokens")
    unsaid = "the provider did not say what it read from its cache"
    told = unsaid if cached is None else f"the provider read {cached} from its cache, tools included, by its own count"
    reason = f", which began by {call['epoch_reason']}" if call.get("epoch_reason") else ""
    terminal.line(f"Call {text_at(call, 'call')}, epoch {text_at(call, 'epoch')}{reason}", "bold")
    terminal.line(f"{tokens} tokens of messages, {reused} of them sent before; {told}")
    for message in messages:
        terminal.line(f"{'│' if message.get('reused') else ' '} {text_at(message, 'kind')} ({_size(message)})", "bold")
        text = _content(message)
        is_cut = len(text) > _SHOWN_CHARACTERS and not whole
        for line in (text[:_SHOWN_CHARACTERS] + " …" if is_cut else text).splitlines():
            terminal.line(f"{'│' if message.get('reused') else ' '}   {line}", "dim" if message.get("reused") else "")
    terminal.line()


def _size(message: Answer) -> str:
    return f"{text_at(message, 'role')}, {number_at(message, 'tokens')} tokens"


def _content(message: Answer) -> str:
    content = message.get("content")
    parts = [content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)] if content else []
    calls = objects_at(message, "tool_calls")
    return "\n".join([*parts, *(json.dumps(call, ensure_ascii=False) for call in calls)])
