"""`ballast agents`: models with instructions and knowledge under a name of their own."""

import json
from typing import TextIO

import click

from cli.advice import ExitCode
from cli.answers import Answer, json_object
from cli.api import Api, segment
from cli.bases import base_id_of
from cli.failures import CommandFailed
from cli.running import Run, Work, call_and_show, list_and_show, make_sure, runs, show_one, yes_option

AGENTS = "/v1/agents"


@click.group()
def agents() -> None:
    """Agents: list, create, show, delete."""


@agents.command("list")
@runs
def list_agents(run: Run) -> Work:
    """Show the agents that you may use."""
    return list_and_show(run, AGENTS, ("name", "role", "model", "knowledge_base_ids"))


@agents.command("create")
@click.argument("name")
@click.option("--base", "names", multiple=True, metavar="NAME", help="A base that it searches, by name or id.")
@click.option("--instructions", help="What it is told in each conversation.")
@click.option("--definition", type=click.File(), help="A JSON file with any fields of an agent; - is standard input.")
@runs
def create_agent(
    run: Run, name: str, names: tuple[str, ...], instructions: str | None, definition: TextIO | None
) -> Work:
    """Create an agent that you own, or replace one that you may edit."""
    body = _read(definition) if definition is not None else {}
    if instructions is not None:
        body["instructions"] = instructions
    return _put(run, name, names, body)


@agents.command("show")
@click.argument("name")
@runs
def show_agent(run: Run, name: str) -> Work:
    """Show an agent."""
    return call_and_show(run, "GET", f"{AGENTS}/{segment(name)}")


@agents.command("delete")
@click.argument("name")
@yes_option
@runs
def delete_agent(run: Run, name: str, *, yes: bool) -> Work:
    """Delete an agent."""
    make_sure(f'Delete the agent "{name}"?', yes=yes)
    return call_and_show(run, "DELETE", f"{AGENTS}/{segment(name)}")


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
