"""`ballast members`: who may use a base, and how."""

from collections.abc import Sequence

import click

from cli.api import Api, segment
from cli.bases import BASES, base_id_of
from cli.listing import show_list, show_one
from cli.running import Run, json_option, make_sure, run_of, yes_option

ROLES = ("owner", "editor", "reader", "restricted_analyst")
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
    """Members of a base: list, set, show, delete. A user is named as by the user id of their keys."""


@members.command("list", cls=_WithBase)
@click.argument("base")
@json_option
@click.pass_context
def list_members(context: click.Context, base: str, *, is_json: bool) -> None:
    """Show the members of a base with their roles."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(_list(run, base))


@members.command("set", cls=_WithBase)
@click.argument("base")
@click.argument("user")
@click.argument("role", type=click.Choice(ROLES))
@json_option
@click.pass_context
def set_member(context: click.Context, base: str, user: str, role: str, *, is_json: bool) -> None:
    """Add a member, or change their role."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(_call(run, "PUT", (base, user), role))


@members.command("show", cls=_WithBase)
@click.argument("base")
@click.argument("user")
@json_option
@click.pass_context
def show_member(context: click.Context, base: str, user: str, *, is_json: bool) -> None:
    """Show the role of a member."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(_call(run, "GET", (base, user)))


@members.command("delete", cls=_WithBase)
@click.argument("base")
@click.argument("user")
@yes_option
@json_option
@click.pass_context
def delete_member(context: click.Context, base: str, user: str, *, yes: bool, is_json: bool) -> None:
    """Take a base from a member."""
    run = run_of(context, is_json=is_json)
    make_sure(f'Take the base "{base}" from {user}?', yes=yes)
    run.to_its_end(_call(run, "DELETE", (base, user)))


async def _list(run: Run, base: str) -> None:
    async with Api(run.connection) as api:
        path = f"{BASES}/{segment(await base_id_of(api, base))}/members"
        await show_list(run, api.items(path), ("user_id", "role"))


async def _call(run: Run, method: str, place: tuple[str, str], role: str | None = None) -> None:
    base, user = place
    async with Api(run.connection) as api:
        path = f"{BASES}/{segment(await base_id_of(api, base))}/members/{segment(user)}"
        show_one(run, await api.call(method, path, {"role": role} if role is not None else None))


def _base_first(args: Sequence[str]) -> list[str]:
    for place, each in enumerate(args):
        if each == "--":
            break
        if each == _BASE_OPTION and place + 1 < len(args):
            return [args[place + 1], *args[:place], *args[place + 2 :]]
        if each.startswith(f"{_BASE_OPTION}="):
            return [each.removeprefix(f"{_BASE_OPTION}="), *args[:place], *args[place + 1 :]]
    return list(args)
