"""Run the fake model server as a process of its own."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.fakes.model_server.script import RecordedRequest, Reply
from tests.fakes.model_server.server import FakeModelServer


async def serve(
    port: int, models: tuple[str, ...], record: Path | None, answer: Callable[[RecordedRequest], Reply] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with FakeModelServer(answer, models=models, record=record, port=port) as server:
        sys.stdout.write(f"MODEL_SERVER_URL={server.base_url}\n")
        sys.stdout.flush()
        await stopped.wait()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="A recording fake model server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--record", type=Path, default=None)
    parser.add_argument("--model", action="append", default=[])
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.port, tuple(arguments.model) or ("fake-model",), arguments.record))


if __name__ == "__main__":
    main()
