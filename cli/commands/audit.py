"""`ballast audit`: what became of the searches of restricted members, for administrators."""

import click

from cli.api import Api
from cli.running import Run, runs, show_list

_COLUMNS = ("created_at", "decision", "reason", "gate_codes", "user_hash", "chunks_found", "latency_ms", "preview")


@click.command()
@click.option("--user", help="Searches of this user alone.")
@click.option("--base", help="Searches of the base with this id alone.")
@click.option("--reason", help="Searches that ended for this reason alone.")
@click.option(
    "--limit", "at_most", type=click.IntRange(min=1), default=50, show_default=True, help="So many, newest first."
)
@runs
async def audit(run: Run, user: str | None, base: str | None, reason: str | None, at_most: int) -> None:
    """Show the searches of restricted members, the newest first."""
    given = {"user_id": user, "knowledge_base_id": base, "reason": reason}
    parameters = {name: value for name, value in given.items() if value is not None}
    async with Api(run.connection) as api:
        await show_list(run, api.items("/v1/audit/safe_summaries", parameters), _COLUMNS, at_most)
