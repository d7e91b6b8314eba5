"""`ballast audit`: what became of the searches of restricted members, for administrators."""

import click

from cli.api import Api, Parameters
from cli.listing import show_list
from cli.running import Run, json_option, run_of

_COLUMNS = ("created_at", "decision", "reason", "gate_codes", "user_hash", "chunks_found", "latency_ms", "preview")


@click.command()
@click.option("--user", help="Searches of this user alone.")
@click.option("--base", help="Searches of the base with this id alone.")
@click.option("--reason", help="Searches that ended for this reason alone.")
@click.option(
    "--limit", "at_most", type=click.IntRange(min=1), default=50, show_default=True, help="So many, newest first."
)
@json_option
@click.pass_context
def audit(
    context: click.Context, user: str | None, base: str | None, reason: str | None, at_most: int, *, is_json: bool
) -> None:
    """Show the searches of restricted members, the newest first."""
    run = run_of(context, is_json=is_json)
    given = {"user_id": user, "knowledge_base_id": base, "reason": reason}
    run.to_its_end(_audit(run, {name: value for name, value in given.items() if value is not None}, at_most))


async def _audit(run: Run, parameters: Parameters, at_most: int) -> None:
    async with Api(run.connection) as api:
        await show_list(run, api.items("/v1/audit/safe_summaries", parameters), _COLUMNS, at_most)
