"""A pair with tool servers, skills and several models, and one restricted base in it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import yaml

from tests.fakes.model_server import FakeModelServer
from tests.leaks.bases import OWNER, Base, stored_base
from tests.leaks.context.cases import DOCUMENT, case_texts, context_cases, filled
from tests.leaks.context.script import Script
from tests.leaks.corpus.reading import document_text, secrets
from tests.leaks.hostile.secondary_server import SecondaryServer
from tests.leaks.oracle.oracle import Oracle
from tests.leaks.pair import ADMIN_KEY, DEFAULT_WAY, MODEL, LeakPair, ModelAddresses, MoreSettings, Way, running_pair
from tests.leaks.visits import ACT_FOR
from tests.servers.ports import accepts_connections, free_port
from tests.servers.services import ROOT, RunningService

TINY, SECOND, THIRD = "tiny-model", "second-model", "third-model"
LABELLED, UNLABELLED = "open", "shut"
SMALL_BUDGET = 2
_TIMEOUT_SECONDS = 6.0


@dataclass
class ContextStage:
    """The pair, its models, and whose clients play on it."""

    pair: LeakPair
    script: Script
    main: FakeModelServer
    service: httpx2.AsyncClient
    owner: httpx2.AsyncClient
    base: Base
    oracle: Oracle
    texts: dict[str, str]


@asynccontextmanager
async def context_stage(
    directory: Path, way: Way = DEFAULT_WAY, *, is_narrow: bool, is_gated: bool = True
) -> AsyncGenerator[ContextStage]:
    """Start all. A narrow one has budgets of two searches a conversation, and skills without a label."""
    script = Script()
    async with (
        FakeModelServer(script.main_answer, models=(MODEL,)) as main,
        SecondaryServer(script.secondary_answer) as secondary,
    ):
        addresses = ModelAddresses(main.base_url, secondary.base_url)
        planted = next(each for each in secrets() if each.file == DOCUMENT)
        port = free_port()
        more = _settings(directory, main.base_url, port, is_narrow=is_narrow)
        listing = directory / "listing"
        listing.write_text("usual")
        server = RunningService(
            *("tests.servers.tool_server", "http", str(port), str(listing)),
            settings={"KEY": "k", "PYTHONPATH": str(ROOT)},
            directory=directory,
            forks=way.forks,
        )
        server.start()
        try:
            server.wait_until(lambda: accepts_connections(port), 60)
            async with running_pair(directory, addresses, _TIMEOUT_SECONDS, way, is_gated=is_gated, more=more) as pair:
                key = await _service_key(pair)
                async with pair.client(key, **{ACT_FOR: OWNER}) as owner, pair.client(key) as service:
                    name = DOCUMENT.rpartition("/")[2]
                    stored = planted.model_copy(update={"file": name})
                    base = await stored_base(
                        owner, pair, {"name": "House rules"}, {name: document_text(DOCUMENT)}, [stored]
                    )
                    passages = {one.chunk_id: one.text for one in base.content.passages}
                    texts = case_texts(base, planted)
                    _write_skills(directory, texts)
                    yield ContextStage(
                        pair, script, main, service, owner, base, Oracle.over(passages, base.secrets), texts
                    )
        finally:
            server.kill()


def _settings(directory: Path, main_url: str, port: int, *, is_narrow: bool) -> MoreSettings:
    directory.mkdir(parents=True, exist_ok=True)
    tiny = {"name": TINY, "base_url": main_url, "context_window_tokens": 8_000, "max_output_tokens": 600}
    models = directory / "models.yaml"
    models.write_text(yaml.safe_dump([tiny, *({"name": name, "base_url": main_url} for name in (SECOND, THIRD))]))
    at = {"address": f"http://127.0.0.1:{port}/mcp", "headers": {"x-key": "KEY_OF_WEB"}}
    servers = [{"name": LABELLED, **at, "accepts_restricted": True}, {"name": UNLABELLED, **at}]
    _write_skills(directory, {})
    skills = {"folder": str(directory / "skills"), "accepts_restricted": not is_narrow}
    tools = directory / "tools.yaml"
    tools.write_text(yaml.safe_dump({"servers": servers, "skills": skills}))
    chat_shell = {"CHAT_SHELL_MODELS_FILE": str(models), "CHAT_SHELL_TOOLS_FILE": str(tools), "KEY_OF_WEB": "k"}
    budgets = f"conversation={SMALL_BUDGET},day=1000,month=1000"
    return MoreSettings({"BACKEND_RESTRICTED_BUDGETS": budgets} if is_narrow else {}, chat_shell)


def skill_name(case: str) -> str:
    """Return the name of a case's skill."""
    return case.replace("_", "-")


def _write_skills(directory: Path, texts: dict[str, str]) -> None:
    """Write a skill for each case that has one; its text is known once the base is stored."""
    for case in context_cases():
        for skill in case.world.get("skills", {}).values():
            folder = directory / "skills" / skill_name(case.name)
            folder.mkdir(parents=True, exist_ok=True)
            head = f"---\nname: {skill_name(case.name)}\ndescription: Write reports.\n---\n"
            (folder / "SKILL.md").write_text(head + filled(skill["text"], texts))


async def _service_key(pair: LeakPair) -> str:
    async with pair.client(ADMIN_KEY) as admin:
        answer = await admin.post("/v1/api_keys", json={"user_id": "context-test", "role": "service"})
    assert answer.status_code == 201, answer.text
    return answer.json()["key"]
