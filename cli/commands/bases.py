"""`ballast bases`: knowledge bases, their documents and what a search finds."""

import click

from cli.answers import Answer, objects_at, passage_name, text_at
from cli.api import Api, segment
from cli.bases import BASES, GRADES, base_id_of
from cli.running import Run, Work, call_and_show, list_and_show, make_sure, runs, show_list, show_one, yes_option

_COLUMNS = ("id", "name", "role", "chunks", "summary")
_HIT_COLUMNS = ("score", "document", "heading_path", "text")


@click.group()
def bases() -> None:
    """Knowledge bases: list, create, show, delete, and look into them."""


@bases.command("list")
@runs
def list_bases(run: Run) -> Work:
    """Show the bases that your key may use."""
    return list_and_show(run, BASES, _COLUMNS)


@bases.command("create")
@click.argument("name")
@click.option("--summary", default="", help="What is in it; models read this.")
@click.option("--grade", type=click.Choice(GRADES), help="What may leave it for restricted members: prose, or codes.")
@runs
def create_base(run: Run, name: str, summary: str, grade: str | None) -> Work:
    """Create a base, which you own."""
    chosen: Answer = {} if grade is None else {"restricted_grade": grade}
    return call_and_show(run, "POST", BASES, {"name": name, "summary": summary, **chosen})


@bases.command("show")
@click.argument("name")
@runs
def show_base(run: Run, name: str) -> Work:
    """Show a base."""
    return _call(run, "GET", name)


@bases.command("grade")
@click.argument("name")
@click.argument("grade", type=click.Choice(GRADES))
@runs
def choose_grade(run: Run, name: str, grade: str) -> Work:
    """Choose what may leave a base for its restricted members: prose that passes the gate, or coded findings."""
    return _call(run, "PATCH", name, {"restricted_grade": grade})


@bases.command("support")
@click.argument("name")
@click.argument("documents", type=click.IntRange(min=3))
@runs
def choose_support(run: Run, name: str, documents: int) -> Work:
    """Choose in how many documents a word must stand to leave a base; with fewer documents findings alone leave it."""
    return _call(run, "PATCH", name, {"support": documents})


@bases.command("content")
@click.argument("name")
@click.argument("content", type=click.Choice(("documents", "records")))
@runs
def choose_content(run: Run, name: str, content: str) -> Work:
    """Say what a base holds: documents, or records, of whose subjects restricted members are told nothing."""
    return _call(run, "PATCH", name, {"content": content})


@bases.command("delete")
@click.argument("name")
@yes_option
@runs
def delete_base(run: Run, name: str, *, yes: bool) -> Work:
    """Delete a base with its documents."""
    make_sure(f'Delete the base "{name}" with all its documents?', yes=yes)
    return _call(run, "DELETE", name)


@bases.command()
@click.argument("name")
@runs
async def documents(run: Run, name: str) -> None:
    """Show the documents of a base."""
    async with Api(run.connection) as api:
        path = f"{BASES}/{segment(await base_id_of(api, name))}/documents"
        await show_list(run, api.items(path), ("name", "media_type", "bytes", "chunks"))


@bases.command()
@click.argument("name")
@click.argument("query")
@runs
async def search(run: Run, name: str, query: str) -> None:
    """Show what a search of a base finds, best first."""
    async with Api(run.connection) as api:
        body: Answer = {"query": query}
        found = await api.call("POST", f"{BASES}/{segment(await base_id_of(api, name))}/search", body)
    if run.terminal.is_json:
        run.terminal.json(found)
    else:
        run.terminal.table([_shorten(hit) for hit in objects_at(found, "data")], _HIT_COLUMNS)


def _shorten(hit: Answer) -> Answer:
    document, text = passage_name(hit, "document"), " ".join(text_at(hit, "text").split())
    return {**hit, "document": document, "text": text[:200]}


async def _call(run: Run, method: str, name: str, body: Answer | None = None) -> None:
    async with Api(run.connection) as api:
        show_one(run, await api.call(method, f"{BASES}/{segment(await base_id_of(api, name))}", body))
