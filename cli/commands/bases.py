"""`ballast bases`: knowledge bases, their documents and what a search finds."""

import click

from cli.answers import Answer, objects_at
from cli.api import Api, segment
from cli.bases import BASES, base_id_of
from cli.listing import call_and_show, list_and_show, show_list, show_one
from cli.running import Run, json_option, make_sure, run_of, yes_option

_COLUMNS = ("id", "name", "role", "chunks", "summary")
_HIT_COLUMNS = ("score", "document", "heading_path", "text")


@click.group()
def bases() -> None:
    """Knowledge bases: list, create, show, delete, and look into them."""


@bases.command("list")
@json_option
@click.pass_context
def list_bases(context: click.Context, *, is_json: bool) -> None:
    """Show the bases that your key may use."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(list_and_show(run, BASES, _COLUMNS))


@bases.command("create")
@click.argument("name")
@click.option("--summary", default="", help="What is in it; models read this.")
@json_option
@click.pass_context
def create_base(context: click.Context, name: str, summary: str, *, is_json: bool) -> None:
    """Create a base, which you own."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(call_and_show(run, "POST", BASES, {"name": name, "summary": summary}))


@bases.command("show")
@click.argument("name")
@json_option
@click.pass_context
def show_base(context: click.Context, name: str, *, is_json: bool) -> None:
    """Show a base."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(_call(run, "GET", name))


@bases.command("delete")
@click.argument("name")
@yes_option
@json_option
@click.pass_context
def delete_base(context: click.Context, name: str, *, yes: bool, is_json: bool) -> None:
    """Delete a base with its documents."""
    run = run_of(context, is_json=is_json)
    make_sure(f'Delete the base "{name}" with all its documents?', yes=yes)
    run.to_its_end(_call(run, "DELETE", name))


@bases.command()
@click.argument("name")
@json_option
@click.pass_context
def documents(context: click.Context, name: str, *, is_json: bool) -> None:
    """Show the documents of a base."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(_documents(run, name))


@bases.command()
@click.argument("name")
@click.argument("query")
@json_option
@click.pass_context
def search(context: click.Context, name: str, query: str, *, is_json: bool) -> None:
    """Show what a search of a base finds, best first."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(_search(run, name, query))


async def _call(run: Run, method: str, name: str) -> None:
    async with Api(run.connection) as api:
        show_one(run, await api.call(method, f"{BASES}/{segment(await base_id_of(api, name))}"))


async def _documents(run: Run, name: str) -> None:
    async with Api(run.connection) as api:
        path = f"{BASES}/{segment(await base_id_of(api, name))}/documents"
        await show_list(run, api.items(path), ("name", "media_type", "bytes", "chunks"))


async def _search(run: Run, name: str, query: str) -> None:
    async with Api(run.connection) as api:
        body: Answer = {"query": query}
        found = await api.call("POST", f"{BASES}/{segment(await base_id_of(api, name))}/search", body)
    if run.terminal.is_json:
        run.terminal.json(found)
    else:
        hits = [{**hit, "text": " ".join(str(hit.get("text")).split())[:200]} for hit in objects_at(found, "data")]
        run.terminal.table(hits, _HIT_COLUMNS)
