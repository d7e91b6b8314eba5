"""The real pair that the clients' programs speak to, with one knowledge base, and the programs' runs against it."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from shared.telemetry import LogEvent
from tests.clients.catalogue import CLIENTS, HERE, ForeignClient
from tests.clients.environments import command, commands_of
from tests.clients.results import FlowResult
from tests.e2e.pair import MODEL, Pair, PairOptions, start_pair
from tests.fakes.model_server import RecordedRequest
from tests.servers.services import RunningService

PROGRAM_TIMEOUT_SECONDS = 900
_KIT = HERE / "kit"
_HANDBOOK = b"# Handbook\n\nThe code word of the handbook is HELIOTROPE.\n\nEach desk has a lamp with a green shade.\n"
_PUBLIC = ("/v1/", "/mcp")
_AGENT = "handbook"
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


@dataclass(frozen=True)
class World:
    """A running pair and where programs leave what they print."""

    pair: Pair
    knowledge_base_id: str
    directory: Path

    def settings(self, client: ForeignClient, environment: Path) -> dict[str, str]:
        """Return what a program finds in its environment, and nothing of the developer's own."""
        places = [*commands_of(client, environment), os.environ["PATH"]] if client.use != "library" else []
        key = self.pair.key(client.folder)
        home = self.directory / "home" / client.folder
        home.mkdir(parents=True, exist_ok=True)
        return {name: os.environ[name] for name in _INHERITED if name in os.environ} | {
            **({"PATH": os.pathsep.join(map(str, places))} if places else {}),
            "HOME": str(home),
            "MODEL_SERVER": self.pair.model_url.removesuffix("/v1"),
            "OPENAI_BASE_URL": f"{self.pair.backend_url}/v1",
            "OPENAI_API_KEY": key,
            "MODEL": MODEL,
            "CLIENT": client.folder,
            "KNOWLEDGE_BASE_ID": self.knowledge_base_id,
            "KNOWLEDGE_AGENT": _AGENT,
            # programs that the tests run may use what these have
            "PYTHONPATH": os.pathsep.join([str(_KIT), *([str(HERE.parents[1])] if client.use != "library" else [])]),
            "PYTHONDONTWRITEBYTECODE": "1",
            # what some clients report to their makers unless told otherwise
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def run_program(
        self, client: ForeignClient, environment: Path, program: Path, flows: tuple[str, ...] = ()
    ) -> list[FlowResult]:
        """Run one program to its end and return what its flows came to; a program that breaks off is a failed flow."""
        if program.suffix == ".mjs":
            for copied in (program, *_KIT.glob("*.mjs")):
                shutil.copy(copied, environment / copied.name)
        log_path = self.directory / f"{client.folder}.{program.stem}.log"
        words = [*command(client, environment, program), *flows]
        began_at = time.time()
        outcome = _run(words, self.settings(client, environment), log_path)
        results = [FlowResult.read(client, line) for line in outcome.lines if line.startswith('{"kind"')]
        if program.stem == "quickstart":
            results = [replace(_of_quickstart(client, outcome), began_at=began_at)]
        elif outcome.exit_code != 0 or not (results or flows):
            note = f"the program ended with {outcome.exit_code}, see {log_path}"
            results.append(FlowResult(client, "program", program.stem, is_ok=False, note=note))
        return results

    def backend_requests(self) -> list[tuple[float, str]]:
        """Return when each public request to the backend ended, in seconds since 1970, and its method and route."""
        lines = (self.directory / "pair" / "backend.log").read_text(encoding="utf-8").splitlines()
        told = [json.loads(line) for line in lines if f'"{LogEvent.HTTP_REQUEST}"' in line]
        return [
            (datetime.fromisoformat(each["timestamp"]).timestamp(), f"{each['method']} {each['route']}")
            for each in told
            if each["route"].startswith(_PUBLIC)
        ]

    async def model_requests(self) -> list[RecordedRequest]:
        """Return all that the fake model was sent."""
        async with self.pair.control() as control:
            return await control.requests()


@dataclass(frozen=True)
class _Outcome:
    exit_code: int
    lines: list[str]
    log_path: Path


def _run(words: list[str], settings: Mapping[str, str], log_path: Path) -> _Outcome:
    with log_path.open("w", encoding="utf-8") as log:
        try:
            done = subprocess.run(
                words,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=dict(settings),
                cwd=log_path.parent,
                timeout=PROGRAM_TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired as late:
            printed: object = late.stdout  # bytes here, whatever the text mode
            text = printed.decode(errors="replace") if isinstance(printed, bytes) else str(printed or "")
            return _Outcome(-1, text.splitlines(), log_path)
    return _Outcome(done.returncode, done.stdout.splitlines(), log_path)


def _of_quickstart(client: ForeignClient, outcome: _Outcome) -> FlowResult:
    printed = "\n".join(outcome.lines)
    # a command, and who only names a model, shows the number of a source and not its name
    names_a_model = "KNOWLEDGE_AGENT" in client.quickstart.read_text(encoding="utf-8")
    sources = "[1]" if names_a_model or client.use != "library" else "handbook.md"
    is_ok = outcome.exit_code == 0 and "HELIOTROPE" in printed and sources in printed
    note = "" if is_ok else f"exit code {outcome.exit_code}, printed {printed[-600:]!r}, see {outcome.log_path}"
    return FlowResult(client, "page", "quickstart", is_ok=is_ok, note=note)


@contextlib.contextmanager
def running_world(directory: Path) -> Generator[World]:
    """Start the pair on an empty SQLite file with a handbook in a base, and end it with the block."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    # coding clients look for the root of a repository, which is not to be ours
    subprocess.run(["git", "init", "--quiet", str(directory)], check=True)

    def launch(
        module: str, *arguments: str, settings: Mapping[str, str], ready_url: str, directory: Path
    ) -> RunningService:
        service = RunningService(module, *arguments, settings=settings, directory=directory, ready_url=ready_url)
        service.start()
        stack.callback(service.kill)
        return service

    with contextlib.ExitStack() as stack:
        pair = start_pair(launch, directory / "pair", PairOptions(model_module="tests.clients.model"))
        yield World(pair, _new_handbook(pair), directory)


def _new_handbook(pair: Pair) -> str:
    with pair.http(pair.key("ann")) as ann:
        created = ann.post("/v1/knowledge_bases", json={"name": "Handbook", "summary": "The rules of the house."})
        base_id = str(created.json()["id"])
        stored = ann.put(f"/v1/knowledge_bases/{base_id}/documents/handbook.md", content=_HANDBOOK)
        for client in CLIENTS:  # a user each, so that no client continues what another one has seen
            ann.put(f"/v1/knowledge_bases/{base_id}/members/{client.folder}", json={"role": "reader"})
        agent = {"model": MODEL, "knowledge_base_ids": [base_id], "visibility": "tenant"}
        ann.put(f"/v1/agents/{_AGENT}", json=agent).raise_for_status()
    if stored.status_code != 201:
        raise RuntimeError(f"the handbook was not stored: {stored.text}")
    return base_id


def recorded_requests(world: World) -> list[RecordedRequest]:
    """Return the model requests, for callers outside of an event loop."""
    return asyncio.run(world.model_requests())


def dump_requests(requests: list[RecordedRequest], path: Path) -> None:
    """Write the bodies down, one a line, for whoever looks into a failure."""
    path.write_text("".join(json.dumps(request.json_body) + "\n" for request in requests), encoding="utf-8")
