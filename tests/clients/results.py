"""What the flows came to, and the table of them."""

import json
import re
from bisect import bisect_right
from collections import defaultdict
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

SUMMARY_BEGINS = "<!-- clients: written by make test-clients -->"
SUMMARY_ENDS = "<!-- clients end -->"
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
    began_at: float = 0
    endpoints: frozenset[str] = frozenset()
    """The methods and routes of the requests that came while it ran."""

    @classmethod
    def read(cls, client: ForeignClient, line: str) -> "FlowResult":
        """Read the line that a program prints of a flow."""
        told = json.loads(line)
        times = float(told["seconds"]), float(told["began_at"])
        return cls(client, told["kind"], told["flow"], bool(told["ok"]), str(told["note"]), *times)

    def with_prefixes(self, requests: Sequence[RecordedRequest]) -> "FlowResult":
        """Hold a resent history to what the model was sent: each request begins with the one before it."""
        if self.kind != "history" or not self.is_ok:
            return self
        share = reused_share(requests, f"history of {self.client.folder} {self.flow}.")
        if share >= MIN_REUSED_SHARE:
            return replace(self, note=f"{share:.3f} of each model request was sent before")
        return replace(self, is_ok=False, note=f"only {share:.3f} of each model request begins as the one before")


def with_endpoints(results: Sequence[FlowResult], requests: Sequence[tuple[float, str]]) -> list[FlowResult]:
    """Give each flow the endpoints of the requests that ended after it began and before the next one did.

    Flows run one after another; `requests` are times and endpoints as the access log tells them.
    """
    begins = sorted(result.began_at for result in results)
    touched = defaultdict[float, set[str]](set)
    for ended_at, endpoint in requests:
        at = bisect_right(begins, ended_at)
        touched[begins[at - 1] if at else 0].add(endpoint)
    return [replace(result, endpoints=frozenset(touched[result.began_at])) for result in results]


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
    return "\n".join([*lines, *_failures(results), *_endpoints(results), ""])


def _endpoints(results: Sequence[FlowResult]) -> list[str]:
    clients = list(dict.fromkeys(result.client for result in results))
    endpoints = sorted({each for result in results for each in result.endpoints}, key=lambda each: each.split()[::-1])
    lines = [
        "",
        "## By endpoint",
        "",
        "A cell counts the flows that work among those during which the client called the endpoint.",
        "",
        f"| endpoint | {' | '.join(client.title for client in clients)} |",
        f"|---|{'---|' * len(clients)}",
    ]
    for endpoint in endpoints:
        touched = [result for result in results if endpoint in result.endpoints]
        cells = [_cell([result for result in touched if result.client is client]) for client in clients]
        lines.append(f"| `{endpoint}` | {' | '.join(cells)} |")
    return lines


def summary(page: str) -> str:
    """Return what README says of the page of the table: its date, and for each client how many of its flows work."""
    day = re.search(r"Written by `make test-clients` on (\S+): (.+?) flows work", page)
    rows = re.findall(r"^\| \[(.+?)\]\((.+?)\) \|.*?\|(.*)\|$", page, re.MULTILINE)
    if day is None:
        raise ValueError("the page of the table does not say when it was written")
    told = [f"[{title}](docs/clients/{name}) {_sum(cells)}" for title, name, cells in rows]
    opening = f"On {day[1]}, {day[2]} flows of unmodified clients work"
    return f"{opening} ([by kind and by endpoint](docs/clients/table.md)):\n{', '.join(told)}."


def with_summary(readme: str, page: str) -> str:
    """Return README with what the page of the table says between its two markers."""
    before, _, rest = readme.partition(SUMMARY_BEGINS)
    _, _, after = rest.partition(SUMMARY_ENDS)
    return f"{before}{SUMMARY_BEGINS}\n{summary(page)}\n{SUMMARY_ENDS}{after}"


def _sum(cells: str) -> str:
    works, tried = zip(*((int(one), int(other)) for one, other in re.findall(r"(\d+)/(\d+)", cells)), strict=True)
    return f"{sum(works)}/{sum(tried)}"


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
