"""`ballast members`: who may use a base, and how."""

import sys
from collections.abc import Sequence

import click

from cli.api import Api, segment
from cli.bases import BASES, GRADES, base_id_of
from cli.commands.groups import member_path
from cli.running import Run, Work, make_sure, runs, show_list, show_one, yes_option

ROLES = ("owner", "editor", "reader", "restricted_analyst")
_RESTRICTED = "restricted_analyst"
_GRADES_BY_EXAMPLE = """\
What may leave this base for its restricted members?
  open    prose that the gate lets out, such as: "Too much rests on one person at night; share the duty."
          General sense of the documents may leave; names, figures and wording stay.
  strict  findings of closed lists, such as: "Night shift: too much depends on one person (serious)."
          Nothing leaves but the chosen codes, at most 71 bits an answer."""
_BASE_OPTION = "--base"


class _WithBase(click.Command):
    """A command whose first argument is BASE; `--base NAME` at any place is that argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the base in its place."""
        return super().parse_args(ctx, _base_first(args))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and that the base may be one of them."""
        super().format_options(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(f"BASE may be given as {_BASE_OPTION} NAME, too.")


@click.group()
def members() -> None:
    """Members of a base: list, set, show, delete. USER is the user id of their keys, or group:NAME for a group."""


@members.command("list", cls=_WithBase)
@click.argument("base")
@runs
async def list_members(run: Run, base: str) -> None:
    """Show the members of a base with their roles."""
    async with Api(run.connection) as api:
        path = f"{BASES}/{segment(await base_id_of(api, base))}/members"
        await show_list(run, api.items(path), ("user_id", "group", "role"))


@members.command("set", cls=_WithBase)
@click.argument("base")
@click.argument("user")
@click.argument("role", type=click.Choice(ROLES))
@click.option("--grade", type=click.Choice(GRADES), help="What may leave the base for its restricted members.")
@runs
async def set_member(run: Run, base: str, user: str, role: str, grade: str | None) -> None:
    """Add a member, or change their role; with the first restricted member you are asked for the grade of the base."""
    async with Api(run.connection) as api:
        path = f"{BASES}/{segment(await base_id_of(api, base))}"
        chosen = grade or (await _ask_for_grade(api, path) if role == _RESTRICTED else None)
        if chosen is not None:
            await api.call("PATCH", path, {"restricted_grade": chosen})
        show_one(run, await api.call("PUT", f"{path}/members/{await member_path(api, user)}", {"role": role}))


@members.command("show", cls=_WithBase)
@click.argument("base")
@click.argument("user")
@runs
def show_member(run: Run, base: str, user: str) -> Work:
    """Show the role of a member."""
    return _call(run, "GET", (base, user))


@members.command("delete", cls=_WithBase)
@click.argument("base")
@click.argument("user")
@yes_option
@runs
def delete_member(run: Run, base: str, user: str, *, yes: bool) -> Work:
    """Take a base from a member."""
    make_sure(f'Take the base "{base}" from {user}?', yes=yes)
    return _call(run, "DELETE", (base, user))


async def _call(run: Run, method: str, place: tuple[str, str]) -> None:
    base, user = place
    async with Api(run.connection) as api:
        path = f"{BASES}/{segment(await base_id_of(api, base))}/members/{await member_path(api, user)}"
        show_one(run, await api.call(method, path))


async def _ask_for_grade(api: Api, path: str) -> str | None:
    """Ask the owner as long as no member is restricted; None where nobody can be asked, or where one is."""
    if not sys.stdin.isatty() or _RESTRICTED in [member["role"] async for member in api.items(f"{path}/members")]:
        return None
    click.echo(_GRADES_BY_EXAMPLE, err=True)
    return click.prompt("Grade", type=click.Choice(GRADES), err=True)


def _base_first(args: Sequence[str]) -> list[str]:
    for place, each in enumerate(args):
        if each == "--":
            break
        if each == _BASE_OPTION and place + 1 < len(args):
            return [args[place + 1], *args[:place], *args[place + 2 :]]
        if each.startswith(f"{_BASE_OPTION}="):
            return [each.removeprefix(f"{_BASE_OPTION}="), *args[:place], *args[place + 1 :]]
    return list(args)
