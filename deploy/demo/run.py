"""Start both services with the demo on this machine; `make run` runs this.

Ctrl-C, SIGTERM and a closed terminal stop everything within three seconds.
"""

import json
import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import urlencode

from deploy.demo.children import Child, ChildFailed
from deploy.demo.folder import FolderTaken, locked_folder
from deploy.demo.kept_child import KeptChild
from deploy.demo.listeners import PortsTaken, check_ports_are_free
from deploy.demo.loading import Demo, Embedded, load, passages_with_vectors
from deploy.demo.local_embedder import is_installed
from deploy.demo.plan import ROOT, FreePorts, Plan, plan
from deploy.demo.public_api import PublicApi, Refused, status_of
from shared.environment import WrongSetting

_READY_TIMEOUT_SECONDS = 60
_EMBEDDER_TIMEOUT_SECONDS = 20
_STOP_TIMEOUT_SECONDS = 2.0
_NEXT_TIMEOUT_SECONDS = 0.3
_WATCH_SECONDS = 0.2
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_QUESTION = "How soon must a page be acknowledged, and what happens when nobody answers?"
_RESTRICTED_QUESTION = "Where are the biggest risks in our partner contracts?"
_QUESTION_ZH = "告警之后多久必须响应？"
_RESTRICTED_QUESTION_ZH = "我们的赔付流程有哪些薄弱环节？"
_REAL_MODEL = "CHAT_SHELL_MODEL=… CHAT_SHELL_MODEL_BASE_URL=… CHAT_SHELL_MODEL_API_KEY=… make run"
_PREPARED = """\
For restricted members the demo's secondary model chooses one of a few prepared texts by words in the passages.
They show the way of an answer, not its quality, and are not about your documents."""


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
        planned = plan(os.environ, var, ports)
        check_ports_are_free(planned.listeners)
        _start_embedder(planned, kept)
        _start(planned, children)
        demo = load(lambda key: PublicApi(planned.backend_url, key), planned.admin_key, planned.directory)
        _announce(planned, demo)
        _tell_how_searches_rank(planned, kept, PublicApi(planned.backend_url, demo.user_key))
        _tell_page(planned, demo)
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


def _announce(planned: Plan, demo: Demo) -> None:
    print(f"Ballast runs. Logs: {os.path.relpath(planned.directory)}/*.log. Ctrl-C stops it.")
    if planned.demo_model_url:
        print(f"The model is demo-model, a stand-in that quotes what it finds. A real one: {_REAL_MODEL}")
        print(f"MODEL_URL={planned.demo_model_url}")
    print(
        f"BACKEND_URL={planned.backend_url}",
        f"USER_KEY={demo.user_key}",
        f"RESTRICTED_KEY={demo.restricted_key}",
        f"METRICS_URL={planned.metrics_url}",
        "",
        "A streamed answer with citations from the handbook:",
        curl_line(planned.backend_url, demo.user_key, demo.handbook_id, _QUESTION),
        "",
        "A restricted member, whose model never sees the text:",
        curl_line(planned.backend_url, demo.restricted_key, demo.contracts_id, _RESTRICTED_QUESTION),
        *((_PREPARED,) if planned.demo_model_url else ()),
        "",
        "In Chinese, in place of base and question in these two lines:",
        f"{demo.handbook_zh_id} {_QUESTION_ZH}",
        f"{demo.contracts_id} {_RESTRICTED_QUESTION_ZH}",
        "",
        "In another terminal, here: ask, add a folder of your own, and ask about it:",
        *first_steps(export_variables(planned.backend_url, planned.metrics_url, demo)),
        sep="\n",
        flush=True,
    )


def _tell_page(planned: Plan, demo: Demo) -> None:
    """Say last where the page is; the keys stand behind `#`, which no browser sends to any server."""
    if status_of(f"{planned.backend_url}/") == 200:
        keys = urlencode({"user": demo.user_key, "restricted": demo.restricted_key, "admin": planned.admin_key})
        print(f"\nOpen {planned.backend_url}/#{keys}", flush=True)


def export_variables(backend_url: str, metrics_url: str, demo: Demo) -> dict[str, str]:
    """Return the variables that a visitor is given: those of the command `ballast`, and those of the guides."""
    return {
        "BALLAST_URL": backend_url,
        "BALLAST_KEY": demo.user_key,
        "BALLAST_BASE": demo.handbook_id,
        "BACKEND_URL": backend_url,
        "METRICS_URL": metrics_url,
        "USER_KEY": demo.user_key,
        "RESTRICTED_KEY": demo.restricted_key,
    }


def first_steps(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the line that exports a visitor's variables, and three commands to try."""
    ballast = os.path.relpath(Path(sys.prefix, "bin", "ballast"))
    return (
        f"export {' '.join(f'{name}={value}' for name, value in variables.items())}",
        f"{ballast} ask {shlex.quote(_QUESTION)}",
        f"{ballast} add ./your-folder --base mine",
        f"{ballast} ask 'What do my files say about …?' --base mine",
    )


def curl_line(backend_url: str, key: str, base_id: str, question: str) -> str:
    """Return a command that asks a question over a base and streams the answer."""
    tools = [{"type": "file_search", "vector_store_ids": [base_id]}]
    body = json.dumps({"input": question, "stream": True, "tools": tools}, ensure_ascii=False)
    headers = f"-H 'Authorization: Bearer {key}' -H 'Content-Type: application/json'"
    return f"curl -sN {backend_url}/v1/responses {headers} -d '{body}'"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "var"))
