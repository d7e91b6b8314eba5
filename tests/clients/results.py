"""What the flows came to, and the table of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.clients.catalogue import ForeignClient
from tests.clients.prefixes import reused_share
from tests.fakes.model_server import RecordedRequest

KINDS = {
    "page": "the page's program",
    "plain": "plain",
    "streamed": "streamed",
    "structured": "structured output",
    "tools": "own functions",
    "knowledge": "knowledge with citations",
    "history": "resent history",
    "state": "kept on the server",
    "images": "images",
    "files": "files",
    "errors": "errors",
    "stopping": "stopping",
    "options": "options",
}
"""The columns of the table: kinds of flows, and how the table names them."""

MIN_REUSED_SHARE = 0.98


@dataclass(frozen=True)
class FlowResult:
    """One flow of one client: whether it worked, and what there is to say about it."""

    client: ForeignClient
    kind: str
    flow: str
    is_ok: bool
    note: str = ""
    seconds: float = 0

    @classmethod
    def read(cls, client: ForeignClient, line: str) -> "FlowResult":
        """Read the line that a program prints of a flow."""
        told = json.loads(line)
        return cls(client, told["kind"], told["flow"], bool(told["ok"]), str(told["note"]), float(told["seconds"]))

    def with_prefixes(self, requests: Sequence[RecordedRequest]) -> "FlowResult":
        """Hold a resent history to what the model was sent: each request begins with the one before it."""
        if self.kind != "history" or not self.is_ok:
            return self
        share = reused_share(requests, f"history of {self.client.folder} {self.flow}.")
        if share >= MIN_REUSED_SHARE:
            return replace(self, note=f"{share:.3f} of each model request was sent before")
        return replace(self, is_ok=False, note=f"only {share:.3f} of each model request begins as the one before")


def table(results: Sequence[FlowResult], versions: dict[str, str], day: str) -> str:
    """Write the page of the table: a row for each client, a column for each kind, `works/tried` in each cell."""
    clients = list(dict.fromkeys(result.client.folder for result in results))
    kinds = [kind for kind in KINDS if any(result.kind == kind for result in results)]
    works = sum(result.is_ok for result in results)
    lines = [
        "# Which clients work, and with what",
        "",
        f"Written by `make test-clients` on {day}: {works} of {len(results)} flows work. A cell counts the flows that",
        "work among those that were tried; an empty one means that the client has nothing of the kind.",
        "",
        f"| client | versions | {' | '.join(KINDS[kind] for kind in kinds)} |",
        f"|---|---|{'---|' * len(kinds)}",
    ]
    for folder in clients:
        own = [result for result in results if result.client.folder == folder]
        cells = [_cell([result for result in own if result.kind == kind]) for kind in kinds]
        client = own[0].client
        lines.append(f"| [{client.title}]({client.page_name}) | {versions[folder]} | {' | '.join(cells)} |")
    return "\n".join([*lines, *_failures(results), ""])


def _cell(results: Sequence[FlowResult]) -> str:
    return f"{sum(result.is_ok for result in results)}/{len(results)}" if results else ""


def _failures(results: Sequence[FlowResult]) -> list[str]:
    failed = [result for result in results if not result.is_ok]
    return ["", "What does not work:", "", *map(_named, failed)] if failed else []


def _named(result: FlowResult) -> str:
    return f"- {result.client.title}: {KINDS.get(result.kind, result.kind)}, `{result.flow}`"


def broken(results: Sequence[FlowResult], promised: str) -> list[FlowResult]:
    """Return the flows that do not work though the page of the table, as it stands, does not say so."""
    said = set(promised.splitlines())
    return [result for result in results if not result.is_ok and _named(result) not in said]


def shown(results: Sequence[FlowResult]) -> str:
    """Return the failures with what was seen, for a terminal."""
    return "\n".join(
        f"FAILED {result.client.folder} {result.kind} {result.flow}: {result.note}"
        for result in results
        if not result.is_ok
    )
