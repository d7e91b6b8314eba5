"""`ballast groups`: groups of people, which administrators make and change."""

import click

from cli.advice import ExitCode
from cli.answers import Answer, text_at
from cli.api import Api, segment
from cli.failures import CommandFailed
from cli.running import Run, Work, list_and_show, make_sure, runs, show_list, show_one, yes_option

GROUPS = "/v1/groups"
GROUP_MARK = "group:"
"""Begins what stands for a group where else a user is named."""

_COLUMNS = ("id", "name", "source", "external_id")


async def group_id_of(api: Api, name: str) -> str:
    """Return the id of the one group of this name or id.

    Raises:
        CommandFailed: there is none, or there are several.
    """
    seen = [each async for each in api.items(GROUPS)]
    found = [each for each in seen if name in (text_at(each, "id"), text_at(each, "name"))]
    if not found:
        mend = "`ballast groups list` shows those that this key sees"
        raise CommandFailed(f'There is no group "{name}" for this key.', ExitCode.NOT_FOUND, mend)
    if len(found) > 1:
        ids = ", ".join(f"{text_at(each, 'id')} ({text_at(each, 'source')})" for each in found)
        raise CommandFailed(f'Several groups are named "{name}".', ExitCode.WRONG_USE, f"name one by its id: {ids}")
    return text_at(found[0], "id")


async def member_path(api: Api, user: str) -> str:
    """Return the end of a member's address: of a user, or of a group as `group:NAME`."""
    if not user.startswith(GROUP_MARK):
        return segment(user)
    return f"groups/{segment(await group_id_of(api, user.removeprefix(GROUP_MARK)))}"


@click.group()
def groups() -> None:
    """Groups of people: list, create, show, rename, delete, members, add, remove. GROUP is a name or an id."""


@groups.command("list")
@runs
def list_groups(run: Run) -> Work:
    """Show all groups to administrators, and to others those that they are in."""
    return list_and_show(run, GROUPS, _COLUMNS)


@groups.command("create")
@click.argument("name")
@click.option("--of-tokens", is_flag=True, help="Tokens say who is in it.")
@runs
async def create_group(run: Run, name: str, *, of_tokens: bool) -> None:
    """Create a group."""
    async with Api(run.connection) as api:
        source = "claim" if of_tokens else "api"
        show_one(run, await api.call("POST", GROUPS, {"name": name, "source": source}))


@groups.command("show")
@click.argument("group")
@runs
def show_group(run: Run, group: str) -> Work:
    """Show a group."""
    return _call(run, "GET", group)


@groups.command("rename")
@click.argument("group")
@click.argument("name")
@runs
def rename_group(run: Run, group: str, name: str) -> Work:
    """Give a group another name."""
    return _call(run, "PATCH", group, body={"name": name})


@groups.command("delete")
@click.argument("group")
@yes_option
@runs
def delete_group(run: Run, group: str, *, yes: bool) -> Work:
    """Delete a group, and with it what those who are in it may do by it."""
    make_sure(f'Delete the group "{group}"?', yes=yes)
    return _call(run, "DELETE", group)


@groups.command("members")
@click.argument("group")
@runs
async def list_people(run: Run, group: str) -> None:
    """Show who is in a group."""
    async with Api(run.connection) as api:
        path = f"{GROUPS}/{segment(await group_id_of(api, group))}/members"
        await show_list(run, api.items(path), ("user_id",))


@groups.command("add")
@click.argument("group")
@click.argument("user")
@runs
def add_person(run: Run, group: str, user: str) -> Work:
    """Put a user into a group."""
    return _call(run, "PUT", group, f"/members/{segment(user)}")


@groups.command("remove")
@click.argument("group")
@click.argument("user")
@yes_option
@runs
def remove_person(run: Run, group: str, user: str, *, yes: bool) -> Work:
    """Take a user out of a group."""
    make_sure(f'Take {user} out of the group "{group}"?', yes=yes)
    return _call(run, "DELETE", group, f"/members/{segment(user)}")


async def _call(run: Run, method: str, group: str, below: str = "", body: Answer | None = None) -> None:
    async with Api(run.connection) as api:
        show_one(run, await api.call(method, f"{GROUPS}/{segment(await group_id_of(api, group))}{below}", body))
