"""`ballast prompts`: what the model was sent for a response, and what of it had been sent before."""

import click

from cli.advice import ExitCode
from cli.answers import Answer, number_at, objects_at, text_at, text_of_message
from cli.api import Api, segment
from cli.connection import last_answer
from cli.failures import CommandFailed
from cli.running import Run, runs
from cli.terminal import Terminal

_SHOWN_CHARACTERS = 400


@click.command()
@click.argument("response", required=False)
@click.option("--whole", is_flag=True, help="Show long messages whole.")
@click.option("--layouts", is_flag=True, help="Tell what each call would have cost in other layouts.")
@runs
async def prompts(run: Run, response: str | None, *, whole: bool, layouts: bool) -> None:
    """Show each model call of a response; without one named, of the last answer of `ballast ask`.

    A bar marks what the call before had sent already, byte for byte: a provider's cache can serve that part.
    """
    named = response or last_answer(run.connection)
    async with Api(run.connection) as api:
        query = {"layouts": "true"} if layouts else {}
        found = await api.call("GET", f"/v1/responses/{segment(named)}/prompts", parameters=query)
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
    if call.get("shortfall") == "policy":
        moved = f"{number_at(call, 'rewritten_tokens')} tokens that the call before had sent elsewhere"
        terminal.line(f"moved by the placement {text_at(call, 'placement')} or the context policy: {moved}", "red")
    if call.get("cache_miss"):
        says = f"; the provider says: {call['cache_diagnosis']}" if call.get("cache_diagnosis") else ""
        terminal.line(f"missed: {text_at(call, 'cache_miss')}{says}", "red")
    for message in messages:
        terminal.line(f"{'│' if message.get('reused') else ' '} {text_at(message, 'kind')} ({_size(message)})", "bold")
        text = text_of_message(message)
        is_cut = len(text) > _SHOWN_CHARACTERS and not whole
        for line in (text[:_SHOWN_CHARACTERS] + " …" if is_cut else text).splitlines():
            terminal.line(f"{'│' if message.get('reused') else ' '}   {line}", "dim" if message.get("reused") else "")
    for layout in objects_at(call, "layouts"):
        sent, cached, cost = (number_at(layout, f"{name}_tokens") for name in ("sent", "cached", "cost"))
        name = text_at(layout, "layout").replace("_", " ")
        terminal.line(f"{name}: {sent} tokens, {cached} of them from a cache, cost as much as {cost}")
    terminal.line()


def _size(message: Answer) -> str:
    return f"{text_at(message, 'role')}, {number_at(message, 'tokens')} tokens"
