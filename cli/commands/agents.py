"""`ballast agents`: models with instructions and knowledge under a name of their own."""

import json
from typing import TextIO

import click

from cli.answers import Answer, json_object
from cli.api import Api, segment
from cli.bases import base_id_of
from cli.exit_codes import ExitCode
from cli.failures import CommandFailed
from cli.listing import call_and_show, list_and_show, show_one
from cli.running import Run, json_option, make_sure, run_of, yes_option

AGENTS = "/v1/agents"


@click.group()
def agents() -> None:
    """Agents: list, create, show, delete."""


@agents.command("list")
@json_option
@click.pass_context
def list_agents(context: click.Context, *, is_json: bool) -> None:
    """Show the agents that you may use."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(list_and_show(run, AGENTS, ("name", "role", "model", "knowledge_base_ids")))


@agents.command("create")
@click.argument("name")
@click.option("--base", "names", multiple=True, metavar="NAME", help="A base that it searches, by name or id.")
@click.option("--instructions", help="What it is told in each conversation.")
@click.option("--definition", type=click.File(), help="A JSON file with any fields of an agent; - is standard input.")
@json_option
@click.pass_context
def create_agent(
    context: click.Context, name: str, names: tuple[str, ...], instructions: str | None, *,
    definition: TextIO | None, is_json: bool,
) -> None:  # fmt: skip
    """Create an agent that you own, or replace one that you may edit."""
    run = run_of(context, is_json=is_json)
    body = _read(definition) if definition is not None else {}
    if instructions is not None:
        body["instructions"] = instructions
    run.to_its_end(_put(run, name, names, body))


@agents.command("show")
@click.argument("name")
@json_option
@click.pass_context
def show_agent(context: click.Context, name: str, *, is_json: bool) -> None:
    """Show an agent."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(call_and_show(run, "GET", f"{AGENTS}/{segment(name)}"))


@agents.command("delete")
@click.argument("name")
@yes_option
@json_option
@click.pass_context
def delete_agent(context: click.Context, name: str, *, yes: bool, is_json: bool) -> None:
    """Delete an agent."""
    run = run_of(context, is_json=is_json)
    make_sure(f'Delete the agent "{name}"?', yes=yes)
    run.to_its_end(call_and_show(run, "DELETE", f"{AGENTS}/{segment(name)}"))


def _read(file: TextIO) -> Answer:
    try:
        return json_object(json.load(file))
    except ValueError as error:
        raise CommandFailed(f"--definition: is no JSON ({error})", ExitCode.WRONG_USE) from None


async def _put(run: Run, name: str, names: tuple[str, ...], body: Answer) -> None:
    async with Api(run.connection) as api:
        if names:
            body["knowledge_base_ids"] = [await base_id_of(api, each) for each in names]
        show_one(run, await api.call("PUT", f"{AGENTS}/{segment(name)}", body))
