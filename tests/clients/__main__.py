"""Try every foreign client against the real pair; print and write the table.

The table is a promise: exit code 1 when a flow fails that it does not name among those that do not work.

`python -m tests.clients [client …] [--flow NAME …]` tries some of them and writes no table.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.clients.catalogue import CLIENTS, ForeignClient
from tests.clients.environments import OLDEST_NODE, install_all, node_program
from tests.clients.results import FlowResult, broken, shown, table, with_endpoints, with_summary
from tests.clients.world import World, dump_requests, recorded_requests, running_world

_ROOT = Path(__file__).resolve().parents[2]
_WORKING = _ROOT / "var" / "clients"
README = _ROOT / "README.md"
TABLE = _ROOT / "docs" / "clients" / "table.md"


def main() -> int:
    """Install, run, tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", choices=[[], *(client.folder for client in CLIENTS)])
    parser.add_argument("--flow", action="append", default=[])
    parser.add_argument("--install-only", action="store_true")
    arguments = parser.parse_args()
    chosen = [client for client in CLIENTS if not arguments.clients or client.folder in arguments.clients]
    chosen = _without_node(chosen)
    started = time.monotonic()
    environments = install_all(chosen)
    _say(f"environments of {len(chosen)} clients after {time.monotonic() - started:.0f} s")
    if arguments.install_only:
        return 0
    # shares of the clients may be tried side by side
    with running_world(_WORKING / "-".join(["run", *arguments.clients])) as world:
        results = _run(world, chosen, environments, tuple(arguments.flow))
        results = with_endpoints(results, world.backend_requests())
    worse = broken(results, TABLE.read_text(encoding="utf-8"))
    written = table(results, {client.folder: _versions(client) for client in chosen}, f"{datetime.now(UTC):%Y-%m-%d}")
    if not arguments.clients and not arguments.flow:
        TABLE.write_text(written, encoding="utf-8")
        README.write_text(with_summary(README.read_text(encoding="utf-8"), written), encoding="utf-8")
    _say(f"{written}\n{shown(results)}")
    failed = sum(not result.is_ok for result in results)
    _say(f"{len(results) - failed} passed, {failed} failed in {time.monotonic() - started:.0f} s")
    if worse:
        _say(f"of these the table says that they work:\n{shown(worse)}")
    return 1 if worse or not results else 0


def _run(
    world: World, clients: Sequence[ForeignClient], environments: dict[str, Path], flows: tuple[str, ...]
) -> list[FlowResult]:
    results: list[FlowResult] = []
    for client in clients:
        started = time.monotonic()
        programs = [program for program in client.programs() if not flows or program != client.quickstart]
        found = [
            result
            for program in programs
            for result in world.run_program(client, environments[client.folder], program, flows)
        ]
        requests = recorded_requests(world)
        dump_requests(requests, world.directory / f"{client.folder}.requests.jsonl")
        results += [result.with_prefixes(requests) for result in found]
        works = sum(result.is_ok for result in results if result.client is client)
        _say(f"{client.title}: {works} of {len(found)} in {time.monotonic() - started:.0f} s")
    return results


def _without_node(clients: list[ForeignClient]) -> list[ForeignClient]:
    if node_program() is not None or all(client.language == "python" for client in clients):
        return clients
    _say(f"no Node: the clients that need Node {OLDEST_NODE} or later are left out")
    return [client for client in clients if client.language == "python"]


def _versions(client: ForeignClient) -> str:
    return ", ".join(f"{name} {version}" for name, version in client.versions().items())


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
