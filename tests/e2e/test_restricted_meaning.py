"""Restricted questions are judged by words and meaning, through the real pair with the embedder of the wheel."""

from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from deploy.demo.local_embedder import embedder_settings
from shared.prompts.knowledge_base import CANNOT_ANSWER
from tests.e2e.client.knowledge_bases import Base, new_base, searches, tool_texts
from tests.e2e.pair import ADMIN_KEY, Pair, PairOptions, start_model, start_pair
from tests.e2e.turns import bare_client, turn
from tests.fakes.model_server import FakeModelControl, Reply
from tests.leaks.corpus.reading import document_text
from tests.leaks.embedding import all_embedded
from tests.patience import PATIENCE_SECONDS
from tests.servers.embedder import LocalEmbedder
from tests.servers.services import Launch

pytestmark = pytest.mark.whole

ANALYST, SECONDARY = "analyst", "second-model"
SUMMARY: dict[str, Any] = {
    "decision": "answer",
    "reason": "risk",
    "summary": "Nobody looks at it with fresh eyes.",
    "observations": [],
    "risks": [],
    "recommended_actions": [],
    "confidence": "low",
}
DOCUMENTS = ("travel-and-expenses", "hiring-and-pay")
IN_OTHER_WORDS = "Do employees cheat when they claim money for journeys, and how could we catch it?"
ABOUT_NOTHING = "Why does a cat purr when it sleeps in the sun?"
IN_CHINESE = "出差报销的审批有什么漏洞？"


async def test_what_a_question_means_decides_with_its_words(
    launch: Launch, tmp_path: Path, local_embedder: LocalEmbedder
) -> None:
    pair, second_url = started(launch, tmp_path, local_embedder)
    documents = {f"{name}.md": document_text(f"en/{name}.md") for name in DOCUMENTS}
    base = new_base(pair, "House rules", documents, **{ANALYST: "restricted_analyst"})
    headers = {"Authorization": f"Bearer {pair.key('ann')}"}
    async with httpx2.AsyncClient(
        base_url=pair.backend_url, headers=headers, timeout=PATIENCE_SECONDS, verify=False
    ) as owner:
        await all_embedded(owner, [base.id])
        async with pair.control() as main, FakeModelControl(second_url) as second:
            ask = Asking(pair, base, main, second)
            assert await ask.outcome(IN_OTHER_WORDS) == "risk"
            assert await ask.outcome(ABOUT_NOTHING) == "insufficient_evidence"
            assert await ask.outcome(IN_CHINESE) == "insufficient_evidence"
            allowed = await owner.patch(f"/v1/knowledge_bases/{base.id}", json={"restricted_translation": True})
            assert allowed.status_code == 200
            assert await ask.outcome(IN_CHINESE) == "risk"
            assert await ask.outcome(ABOUT_NOTHING) == "insufficient_evidence"


class Asking:
    """A restricted member's questions, each in a conversation of its own."""

    def __init__(self, pair: Pair, base: Base, main: FakeModelControl, second: FakeModelControl) -> None:
        self._pair, self._base = pair, base
        self._main, self._second = main, second

    async def outcome(self, question: str) -> str:
        """Ask, and return the audit's reason; the secondary model and the main one have seen what this means."""
        await self._second.reset()
        await self._main.reset()
        await self._main.script(searches(question), Reply(text=("As far as I can tell.",)))
        summary = SUMMARY if question.isascii() else {**SUMMARY, "summary": "没有人认真核对。"}
        await self._second.script(Reply(text=(orjson.dumps(summary).decode(),)))
        async with bare_client(self._pair, ANALYST) as client:
            await turn(client, question, tools=[self._base.tool])
        shown = tool_texts((await self._main.requests())[-1])[0]
        with self._pair.http(ADMIN_KEY) as admin:
            [record] = admin.get("/v1/audit/safe_summaries?limit=1&order=desc").json()["data"]
        is_refused = record["decision"] == "refuse"
        assert (shown == CANNOT_ANSWER, await self._second.requests() == []) == (is_refused, is_refused)
        return record["reason"]


def started(launch: Launch, directory: Path, embedder: LocalEmbedder) -> tuple[Pair, str]:
    """Start a pair with this embedder and a secondary model, and return the address of the latter too."""
    second, url = start_model(launch, directory / "second", SECONDARY)
    second.wait_ready()
    backend = {**embedder_settings(embedder.port), "BACKEND_EMBEDDING_QUERY_TIMEOUT_SECONDS": "20"}
    chat_shell = {"CHAT_SHELL_SAFE_SUMMARY_MODEL": SECONDARY, "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": url}
    return start_pair(launch, directory / "pair", PairOptions(backend=backend, chat_shell=chat_shell)), url
