"""Start both services with the demo on this machine; `make run` runs this.

Ctrl-C, SIGTERM and a closed terminal stop everything within three seconds.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from types import FrameType
from typing import NoReturn

from deploy.demo.announcement import all_lines, calm_lines, list_variables, page_address
from deploy.demo.children import Child, ChildFailed
from deploy.demo.environment_file import ENVIRONMENT, write_environment
from deploy.demo.folder import FolderTaken, locked_folder
from deploy.demo.kept_child import KeptChild
from deploy.demo.listeners import PortsTaken, check_ports_are_free
from deploy.demo.loading import Embedded, load, passages_with_vectors
from deploy.demo.local_embedder import is_installed
from deploy.demo.local_models import choose_local_model, list_offers
from deploy.demo.plan import ROOT, FreePorts, Plan, plan
from deploy.demo.public_api import PublicApi, Refused, status_of
from shared.environment import WrongSetting

_READY_TIMEOUT_SECONDS = 60
_EMBEDDER_TIMEOUT_SECONDS = 20
_STOP_TIMEOUT_SECONDS = 2.0
_NEXT_TIMEOUT_SECONDS = 0.3
_WATCH_SECONDS = 0.2
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(var: Path) -> int:
    """Run until told to stop; returns the exit code. Logs, keys and secrets go below `var`."""
    for number in _STOP_SIGNALS:
        signal.signal(number, _interrupt)
    try:
        with locked_folder(var):
            return _run(var)
    except KeyboardInterrupt:
        return 0
    except (FolderTaken, PortsTaken, ChildFailed, Refused, WrongSetting, OSError) as error:
        print(f"The demo cannot start: {error}", file=sys.stderr, flush=True)
        return 1


def _run(var: Path) -> int:
    children: list[Child] = []
    kept: list[KeptChild] = []
    try:
        ports = FreePorts(_free_port(), _free_port(), _free_port() if is_installed() else None)
        offered = list_offers(os.environ)
        planned = plan(choose_local_model(os.environ), var, ports)
        check_ports_are_free(planned.listeners)
        _start_embedder(planned, kept)
        _start(planned, children)
        demo = load(lambda key: PublicApi(planned.backend_url, key), planned.admin_key, planned.directory)
        variables = list_variables(planned, demo)
        write_environment(var / "demo" / ENVIRONMENT, variables)
        lines = calm_lines(planned, variables) if sys.stdout.isatty() else all_lines(planned, demo, variables)
        print(*lines, *offered, sep="\n", flush=True)
        _tell_how_searches_rank(planned, kept, PublicApi(planned.backend_url, demo.user_key))
        if status_of(f"{planned.backend_url}/") == 200:
            print(f"\nOpen {page_address(planned, demo)}", flush=True)
        return watch(children, kept)
    except KeyboardInterrupt:
        print("\nStopping …", flush=True)
        raise
    finally:
        for number in _STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        stop_all([*(each.child for each in kept), *children], _STOP_TIMEOUT_SECONDS)


def stop_all(children: Sequence[Child], timeout_seconds: float) -> None:
    """Ask the children to end, the one that was started last first; kill each that has not ended in time.

    A child needs those that were started before it to end its work. The first one that is asked has `timeout_seconds`;
    each of the others has what is left of that, and a moment.
    """
    give_up = time.monotonic() + timeout_seconds
    for child in reversed(children):
        child.stop(max(0.0, give_up - time.monotonic()))
        give_up += _NEXT_TIMEOUT_SECONDS


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _start(planned: Plan, children: list[Child]) -> None:
    for start in planned.starts:
        rotate_log(start.child.log_path)
        child = Child(start.child)
        child.start()
        children.append(child)
    for start, child in zip(planned.starts, children, strict=True):
        child.wait_until(lambda url=start.ready_url: status_of(url) == 200, _READY_TIMEOUT_SECONDS)


def _start_embedder(planned: Plan, kept: list[KeptChild]) -> None:
    if planned.embedder is not None:
        rotate_log(planned.embedder.child.log_path)
        embedder = KeptChild(Child(planned.embedder.child))
        embedder.start()
        kept.append(embedder)


def _tell_how_searches_rank(planned: Plan, kept: Sequence[KeptChild], owner: PublicApi) -> None:
    """Say in one line whether searches rank by meaning, and where they do not, why."""
    if planned.embedder is None and not os.environ.get("BACKEND_EMBEDDING_BASE_URL"):
        print("Searches are by words only: requirements/local-embeddings.txt is not installed here.", flush=True)
        return
    if planned.embedder is not None:
        ready_url = planned.embedder.ready_url
        try:
            kept[0].child.wait_until(lambda: status_of(ready_url) == 200, _EMBEDDER_TIMEOUT_SECONDS)
        except ChildFailed:
            log = os.path.relpath(planned.embedder.child.log_path)
            print(f"Searches are by words only for now: the embedder does not start; {log} may say why.", flush=True)
            return
    print(how_searches_rank(passages_with_vectors(owner)), flush=True)


_SECONDS_A_PASSAGE = 0.5
"""What the embedder takes on a slow core: it is a guess until some passages have been embedded."""


def how_searches_rank(embedded: Embedded) -> str:
    """Say by what searches of the demo rank now.

    This is said and not waited for: the first vectors take longer than all else together, and the questions that the
    demo proposes have the same answers before.
    """
    if embedded.of and embedded.passages == embedded.of:
        return "Searches rank by words and by meaning: docs/embeddings.md shows it."
    guessed = _SECONDS_A_PASSAGE * (embedded.of - embedded.passages)
    minutes = ceil((guessed if embedded.seconds_left is None else embedded.seconds_left) / 60)
    soon = f"about {minutes} minutes" if minutes > 1 else "a minute or two"
    of_all = f" ({embedded.passages} of {embedded.of} passages so far)" if embedded.of else ""
    return f"Searches go by words already, and by meaning as well in {soon}{of_all}: docs/embeddings.md shows it."


_LOGS_KEPT = 5


def rotate_log(log_path: Path) -> None:
    """Rename the logs of the last runs, which may tell why they ended; some starts that failed drop none of them."""
    kept = [log_path, *(log_path.with_name(f"{log_path.name}.{number}") for number in range(1, _LOGS_KEPT + 1))]
    for newer, older in reversed(list(pairwise(kept))):
        if newer.exists():
            newer.replace(older)


def watch(children: Sequence[Child], kept: Sequence[KeptChild] = ()) -> int:
    """Wait until a child ends, print how it ended, and return 1; a kept one is started again."""
    while True:
        for each in kept:
            each.look()
        for child in children:
            if child.exit_code is not None:
                print(f"{child.ending}\n{child.log_tail()}", file=sys.stderr, flush=True)
                return 1
        time.sleep(_WATCH_SECONDS)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "var"))
