"""`ballast keys`: the API keys, for administrators."""

import click

from cli.answers import Answer
from cli.api import segment
from cli.running import Run, Work, call_and_show, list_and_show, make_sure, runs, yes_option
from shared.clock import SystemClock

KEYS = "/v1/api_keys"
_COLUMNS = ("id", "user_id", "role", "tenant", "expires_at", "last_used_at", "replaced_by")
_DAY_SECONDS = 86_400


@click.group()
def keys() -> None:
    """API keys, for administrators: list, create, show, rotate, delete."""


@keys.command("list")
@runs
def list_keys(run: Run) -> Work:
    """Show all keys without their secrets."""
    return list_and_show(run, KEYS, _COLUMNS)


@keys.command("create")
@click.argument("user")
@click.option("--role", type=click.Choice(("user", "admin", "service")), default="user", show_default=True)
@click.option("--tenant", default="default", show_default=True)
@click.option("--days", type=click.IntRange(min=1), help="The key expires after so many days.")
@runs
def create_key(run: Run, user: str, role: str, tenant: str, days: int | None) -> Work:
    """Create a key for a user; it is shown this once."""
    body: Answer = {"user_id": user, "role": role, "tenant": tenant}
    if days is not None:
        body["expires_at"] = int(SystemClock().now().timestamp()) + days * _DAY_SECONDS
    return call_and_show(run, "POST", KEYS, body)


@keys.command("show")
@click.argument("key_id")
@runs
def show_key(run: Run, key_id: str) -> Work:
    """Show a key without its secret."""
    return call_and_show(run, "GET", f"{KEYS}/{segment(key_id)}")


@keys.command("rotate")
@click.argument("key_id")
@click.option("--overlap-seconds", type=int, default=_DAY_SECONDS, show_default=True, help="The old key lives so long.")
@runs
def rotate_key(run: Run, key_id: str, overlap_seconds: int) -> Work:
    """Create a key in the place of another one; it is shown this once."""
    path = f"{KEYS}/{segment(key_id)}/rotate"
    return call_and_show(run, "POST", path, {"overlap_seconds": overlap_seconds})


@keys.command("delete")
@click.argument("key_id")
@yes_option
@runs
def delete_key(run: Run, key_id: str, *, yes: bool) -> Work:
    """Delete a key; it is refused from then on."""
    make_sure(f"Delete the key {key_id}?", yes=yes)
    return call_and_show(run, "DELETE", f"{KEYS}/{segment(key_id)}")
