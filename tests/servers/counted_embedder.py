"""The counting embedder as a process of the tests."""

import signal
from collections import Counter
from pathlib import Path

import orjson

from tests.servers.ports import free_port
from tests.servers.services import RunningService


class CountedEmbedder(RunningService):
    """An embedder whose calls are counted over all its starts; `settings` are those of a backend that asks it."""

    def __init__(self, directory: Path, *, seconds_of_call: float = 0.0, dimension: int = 32) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._asked = directory / "asked.jsonl"
        port = free_port()
        super().__init__(
            "tests.fakes.counting_embedder",
            *(
                "--port",
                str(port),
                "--asked",
                str(self._asked),
                "--seconds",
                str(seconds_of_call),
                "--dimension",
                str(dimension),
            ),
            settings={},
            directory=directory,
            ready_url=f"http://127.0.0.1:{port}/health",
        )
        self.settings = {
            "BACKEND_EMBEDDING_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "BACKEND_EMBEDDING_MODEL": "counted",
            "BACKEND_EMBEDDING_QUERY_INPUT_TYPE": "query",
            "BACKEND_EMBEDDING_PASSAGE_INPUT_TYPE": "passage",
            "BACKEND_EMBEDDING_TIMEOUT_SECONDS": "2",
        }

    def start_and_wait(self) -> None:
        """Start it, and return when it answers."""
        self.start()
        self.wait_ready()

    def freeze(self) -> None:
        """Let it keep its connections and answer nobody."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.send(signal.SIGCONT)

    def asked(self) -> Counter[str]:
        """Return how often each text has been asked for as a passage."""
        if not self._asked.exists():
            return Counter()
        return Counter(text for line in self._asked.read_bytes().splitlines() for text in orjson.loads(line))
