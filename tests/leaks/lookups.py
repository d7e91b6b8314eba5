"""Searches without a conversation: a restricted member calls every tool of `/mcp`, and all that they get is scanned."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import httpx2

from shared.prompts.knowledge_base import CANNOT_ANSWER
from tests.fakes.mcp_client import message, post
from tests.leaks.runner import Stage, leaks_in
from tests.leaks.sinks import SinkText, leaves, metric_texts
from tests.leaks.visits import ACT_FOR, Visit, scan_visit, tellers

SINK = "client mcp"


class _Call(NamedTuple):
    method: str
    params: dict[str, Any]


async def play_lookups(stage: Stage, visits: Iterable[Visit]) -> None:
    """Play the trials of visits as searches over MCP, with calls that a member may not make; scan what they leave."""
    for visit in visits:
        await stage.visitor.admit(visit)
        for trial in visit.trials:
            visit.user_texts.append(trial.query)
            arguments = {"query": trial.query, "knowledge_base_ids": [visit.base.id]}
            answer = await _sent(
                stage, visit, _Call("tools/call", {"name": "search_knowledge", "arguments": arguments})
            )
            trial.result = _shown(answer)
        for call in _forbidden(visit):
            answer = await _sent(stage, visit, call)
            stage.results.forgeries[f"mcp {call.method}: {answer.status_code}"] += 1
        await _scan(stage, visit)


async def _sent(stage: Stage, visit: Visit, call: _Call) -> httpx2.Response:
    answer = await post(stage.service, message(call.method, **call.params), **{ACT_FOR: visit.user})
    visit.received += leaves(SINK, answer.content)
    visit.received += (SinkText(SINK, value) for value in answer.headers.values())
    return answer


def _shown(answer: httpx2.Response) -> str:
    """Return the text of a search that a client's model reads."""
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    (text,) = [content["text"] for content in result["content"]]
    assert result["structuredContent"]["results"] == []
    assert (text == CANNOT_ANSWER) is (result["structuredContent"]["restricted"]["summary"] is None)
    return text


def _forbidden(visit: Visit) -> Iterator[_Call]:
    """Yield calls to which a restricted member gets no text of the base."""
    base, names = visit.base.id, [*visit.base.document_ids, "missing.md"]
    yield _Call("tools/call", {"name": "list_knowledge_bases", "arguments": {}})
    yield _Call("tools/call", {"name": "list_documents", "arguments": {"knowledge_base_id": base}})
    yield _Call("resources/list", {})
    for place, name in enumerate(names[:2] + names[-1:]):
        read = {"knowledge_base_id": base, "document": visit.base.document_ids.get(name, name) if place else name}
        yield _Call("tools/call", {"name": "read_document", "arguments": read})
    documents = f"ballast://knowledge_bases/{base}/documents"
    yield _Call("resources/read", {"uri": f"{documents}/{next(iter(visit.base.document_ids.values()))}"})
    yield _Call("tools/call", {"name": "search_knowledge", "arguments": {"query": "", "knowledge_base_ids": [base]}})


async def _scan(stage: Stage, visit: Visit) -> None:
    stage.oracle.add_canaries(stage.registry.canaries)
    seen = list(scan_visit(visit, stage.oracle))
    stage.results.take(visit, seen)
    stage.results.trials += visit.trials
    left = [*stage.logs.new_texts(), *await stage.tables.new_texts(), *await metric_texts(stage.pair)]
    stage.results.sightings += dict.fromkeys(leaks_in(left, stage.oracle, visit.circumstances, tellers(seen)))
