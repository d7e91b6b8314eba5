"""What flows of clients need that are commands: a run, an interruption, what the model was sent."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flow_kit import API_KEY, BASE_URL, CLIENT, KNOWLEDGE_BASE_ID, MODEL, check

HOME = Path(os.environ["HOME"])
MODEL_SERVER = os.environ["MODEL_SERVER"]
AGENT = f"{CLIENT.replace('_', '-')}-handbook"
ENDLESS = "Never end"  # to what begins so the model says a few words and then nothing, until it is left
_PATIENCE_SECONDS = 120
_STOP_SECONDS = 10
# what runs in the background of a shell ignores Ctrl-C, and so would the commands that it starts
signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and how it ended."""

    out: str
    err: str
    code: int

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of its output that are JSON objects."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


def command(*words: str, given: str = "", settings: Mapping[str, str] | None = None, folder: Path = HOME) -> Outcome:
    """Run a command to its end, whatever its exit code."""
    done = subprocess.run(
        words,
        check=False,
        input=given,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **(settings or {})},
        timeout=_PATIENCE_SECONDS,
    )
    return Outcome(done.stdout, done.stderr, done.returncode)


def works(*words: str, given: str = "", settings: Mapping[str, str] | None = None, folder: Path = HOME) -> Outcome:
    """Run a command that must succeed."""
    outcome = command(*words, given=given, settings=settings, folder=folder)
    check(outcome.code == 0, outcome.code, outcome.err[-1200:], outcome.out[-800:])
    return outcome


def new_folder(name: str) -> Path:
    """Make an empty folder that is a git repository, as users of coding clients have one."""
    folder = HOME / name
    folder.mkdir(parents=True)
    for words in (("init", "-q"), ("config", "user.email", "ann@example.com"), ("config", "user.name", "Ann")):
        subprocess.run(("git", *words), check=True, cwd=folder)
    return folder


def tells(outcome: Outcome, *words: str) -> None:
    """Check that a refused command tells its user what is wrong."""
    shown = f"{outcome.out}\n{outcome.err}"
    check(all(word.lower() in shown.lower() for word in words), words, shown[-1500:])


def call(method: str, path: str, body: Any = None, key: str = API_KEY) -> Any:
    """Call the API as an administrator of these clients would with curl."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return _answer(urllib.request.Request(f"{BASE_URL}{path}", data=data, headers=headers, method=method), 60)


def make_agent() -> str:
    """Put the handbook into an agent, for clients that can only name a model, and return its name."""
    body = {"model": MODEL, "instructions": "Be brief.", "knowledge_base_ids": [KNOWLEDGE_BASE_ID]}
    call("PUT", f"/agents/{AGENT}", body)
    return AGENT


def model_requests(words: str) -> dict[int, dict[str, Any]]:
    """Return what the provider was sent that holds these words: the number of the request, and its body."""
    sent = _answer(urllib.request.Request(f"{MODEL_SERVER}/_requests"), 60)
    bodies = {number: base64.urlsafe_b64decode(each["body"]).decode() for number, each in enumerate(sent)}
    return {number: json.loads(body) for number, body in bodies.items() if words in body}


def wait_asked(words: str) -> int:
    """Return the number of the provider's newest request with these words, once there is one."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (found := model_requests(words)):
        check(time.monotonic() < deadline, f"the provider was never asked: {words}")
        time.sleep(0.1)
    return max(found)


def check_let_go(request: int) -> None:
    """Check that the provider's stream of this request is closed, so that nobody pays for it any longer."""
    try:
        _answer(urllib.request.Request(f"{MODEL_SERVER}/_wait_closed?request={request}"), _STOP_SECONDS)
    except TimeoutError:
        raise AssertionError(
            f"the provider was still streaming {_STOP_SECONDS} s after the client had stopped"
        ) from None


@contextlib.contextmanager
def running(
    *words: str, settings: Mapping[str, str] | None = None, folder: Path = HOME
) -> Generator[subprocess.Popen[bytes]]:
    """Run a command beside the block, its output in a log of its name, and end it with the block."""
    with (
        (HOME / f"{Path(words[-1]).stem[:40]}.log").open("wb") as log,
        subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, **(settings or {})},
            start_new_session=True,
        ) as started,
    ):
        try:
            yield started
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


def check_interrupted(mark: str, *words: str, settings: Mapping[str, str] | None = None, folder: Path = HOME) -> None:
    """Press Ctrl-C while a command waits for the rest of an answer to what holds the mark."""
    with running(*words, settings=settings, folder=folder) as started:
        request = wait_asked(mark)
        os.killpg(started.pid, signal.SIGINT)
        check_let_go(request)


def _answer(request: urllib.request.Request, timeout_seconds: float) -> Any:
    try:
        with urllib.request.urlopen(request, timeout=timeout_seconds) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{request.full_url}: {error.code} {error.read().decode()[:800]}") from error
