"""`ballast keys`: the API keys, for administrators."""

import click

from cli.answers import Answer
from cli.api import segment
from cli.listing import call_and_show, list_and_show
from cli.running import json_option, make_sure, run_of, yes_option
from shared.clock import SystemClock

KEYS = "/v1/api_keys"
_COLUMNS = ("id", "user_id", "role", "tenant", "expires_at", "last_used_at", "replaced_by")
_DAY_SECONDS = 86_400


@click.group()
def keys() -> None:
    """API keys, for administrators: list, create, show, rotate, delete."""


@keys.command("list")
@json_option
@click.pass_context
def list_keys(context: click.Context, *, is_json: bool) -> None:
    """Show all keys without their secrets."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(list_and_show(run, KEYS, _COLUMNS))


@keys.command("create")
@click.argument("user")
@click.option("--role", type=click.Choice(("user", "admin", "service")), default="user", show_default=True)
@click.option("--tenant", default="default", show_default=True)
@click.option("--days", type=click.IntRange(min=1), help="The key expires after so many days.")
@json_option
@click.pass_context
def create_key(context: click.Context, user: str, role: str, tenant: str, days: int | None, *, is_json: bool) -> None:
    """Create a key for a user; it is shown this once."""
    run = run_of(context, is_json=is_json)
    body: Answer = {"user_id": user, "role": role, "tenant": tenant}
    if days is not None:
        body["expires_at"] = int(SystemClock().now().timestamp()) + days * _DAY_SECONDS
    run.to_its_end(call_and_show(run, "POST", KEYS, body))


@keys.command("show")
@click.argument("key_id")
@json_option
@click.pass_context
def show_key(context: click.Context, key_id: str, *, is_json: bool) -> None:
    """Show a key without its secret."""
    run = run_of(context, is_json=is_json)
    run.to_its_end(call_and_show(run, "GET", f"{KEYS}/{segment(key_id)}"))


@keys.command("rotate")
@click.argument("key_id")
@click.option("--overlap-seconds", type=int, default=_DAY_SECONDS, show_default=True, help="The old key lives so long.")
@json_option
@click.pass_context
def rotate_key(context: click.Context, key_id: str, overlap_seconds: int, *, is_json: bool) -> None:
    """Create a key in the place of another one; it is shown this once."""
    run = run_of(context, is_json=is_json)
    path = f"{KEYS}/{segment(key_id)}/rotate"
    run.to_its_end(call_and_show(run, "POST", path, {"overlap_seconds": overlap_seconds}))


@keys.command("delete")
@click.argument("key_id")
@yes_option
@json_option
@click.pass_context
def delete_key(context: click.Context, key_id: str, *, yes: bool, is_json: bool) -> None:
    """Delete a key; it is refused from then on."""
    run = run_of(context, is_json=is_json)
    make_sure(f"Delete the key {key_id}?", yes=yes)
    run.to_its_end(call_and_show(run, "DELETE", f"{KEYS}/{segment(key_id)}"))
