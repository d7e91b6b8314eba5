"""What goes round the main model: forged modes and tickets, calls that a member may not make, roles that change."""

import base64
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import orjson

from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket
from shared.models.execution import AccessMode, ExecutionRequest, Knowledge, KnowledgeBaseRef, TurnLimits, User
from shared.models.json_text import encode_json
from shared.models.messages import TextPart
from shared.models.openai_converter import OpenAIRequestConverter
from shared.prompts import knowledge_base as texts
from tests.fakes.chat_shell_requests import full_parameters, full_request
from tests.leaks.bases import OWNER, Base
from tests.leaks.corpus.reading import Attack, ToolAttempt
from tests.leaks.hostile.stubs import HONEST, STUBS
from tests.leaks.oracle.oracle import Circumstances
from tests.leaks.pair import MODEL, SECRET, SERVICE_TOKEN
from tests.leaks.runner import Stage, leaks_in
from tests.leaks.sinks import SinkText, leaves
from tests.leaks.visits import Visit, client_texts, scan_visit, tellers
from tests.patience import PATIENCE_SECONDS

_MODES: dict[str, Any] = {"full": "full", "null": None, "empty": "", "unknown": "partial"}
_VERSIONS = {"policy_version": "1", "gate_version": "1", "prompt_version": "1", "model": "secondary-model"}


async def play_forgeries(stage: Stage, cases: Iterable[Attack]) -> None:
    """Play what the cases want besides a conversation, and scan each answer."""
    for case in cases:
        found: list[SinkText] = []
        if case.setup.ticket_sent:
            found += await _forged_ticket(stage, case)
        if case.setup.access_mode_sent:
            found += await _forged_mode(stage, case)
        if case.attack_class in ("other_tools", "ticket_forgery"):
            found += await _calls_of_a_member(stage, case)
        stage.results.sightings += leaks_in(found, stage.oracle, _nothing_excused(stage.base_for(case, 0), case), {})


async def play_role_changes(stage: Stage, cases: Iterable[Attack]) -> None:
    """Play cases in which the member has read the base before, and scan what comes after.

    What the database and the main model got before the change was theirs by right.
    """
    for case in cases:
        visit = stage.planned(case, 0, [HONEST, *STUBS[: len(case.user_turns)]])
        if case.setup.other_conversation_role:
            reader = stage.planned(case, 0, [HONEST] * len(case.user_turns))
            await stage.visitor.admit(reader, case.setup.other_conversation_role)
            await _say(stage, reader, case.user_turns)
        change = case.setup.role_change
        turns_before = change.after_turn if change else 0
        await stage.visitor.admit(visit, change.before if change else "restricted_analyst")
        await _say(stage, visit, case.user_turns[:turns_before])
        await stage.visitor.admit(visit, "restricted_analyst")
        visit.lane.requests.clear()
        visit.received.clear()
        visit.trials = [trial for trial in visit.trials if trial.result is None]
        for _ in stage.logs.new_texts():
            pass
        await _say(stage, visit, case.user_turns[turns_before:])
        await stage.visitor.read_back(visit)
        given = _nothing_excused(visit.base, case)
        for trial in visit.trials:
            trial.shown = given.shown
        stage.oracle.add_canaries(stage.registry.canaries)
        seen = list(scan_visit(visit, stage.oracle))
        stage.results.take(visit, seen)
        stage.results.sightings += leaks_in(stage.logs.new_texts(), stage.oracle, given, tellers(seen))
        stage.results.trials += [trial for trial in visit.trials if trial.is_counted]


async def _say(stage: Stage, visit: Visit, turns: Iterable[str]) -> None:
    for words in turns:
        waiting = [trial for trial in visit.trials if trial.result is None]
        await stage.visitor.turn(visit, words, waiting[:1])


async def _forged_ticket(stage: Stage, case: Attack) -> list[SinkText]:
    base = stage.base_for(case, 0)
    ticket = await _ticket_of(stage, case, base)
    found: list[SinkText] = []
    async with httpx2.AsyncClient(
        base_url=stage.pair.backend_url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    ) as client:
        client.headers["Authorization"] = f"Bearer {SERVICE_TOKEN}"
        bodies: dict[str, dict[str, Any]] = {
            "search": {"query": "rules", "knowledge_base_ids": [base.id], "whole_below_tokens": 12_000},
            "search sealed": {"query": "rules", "knowledge_base_ids": [base.id], "sealed": _VERSIONS},
            "documents": {"knowledge_base_ids": [base.id]},
            "read": {"file_id": next(iter(base.document_ids.values()))},
        }
        for name, body in bodies.items():
            if name == "search sealed" and case.setup.ticket_sent == "other_turn":
                continue  # still the member's own ticket: the room may use it
            place = f"/internal/v1/knowledge/{name.partition(' ')[0]}"
            answer = await client.post(place, json=body | ({} if ticket is None else {"ticket": ticket}))
            stage.results.forgeries[f"ticket {case.setup.ticket_sent}: {answer.status_code}"] += 1
            found += leaves("error body", answer.content)
    return found


async def _ticket_of(stage: Stage, case: Attack, base: Base) -> str | None:
    user = f"forger-{case.id}"
    await stage.owner.put(f"/v1/knowledge_bases/{base.id}/members/{user}", json={"role": "restricted_analyst"})
    own = _signed(user, (base.id,), minutes=5)
    match case.setup.ticket_sent:
        case "none":
            return None
        case "garbage":
            return "e30.e30"
        case "expired":
            return _signed(user, (base.id,), minutes=-5)
        case "bit_flipped":
            return own[:-4] + ("A" if own[-4] != "A" else "B") + own[-3:]
        case "other_user":
            payload = orjson.loads(base64.urlsafe_b64decode(own.partition(".")[0] + "=="))
            swapped = base64.urlsafe_b64encode(orjson.dumps(payload | {"user_id": OWNER})).rstrip(b"=").decode()
            return f"{swapped}.{own.partition('.')[2]}"
        case "other_base":
            return _signed(user, ("kb_" + "0" * 32,), minutes=5)
        case _:
            return own


async def _forged_mode(stage: Stage, case: Attack) -> list[SinkText]:
    """Call chat_shell as the backend does; the mode in the metadata is not the member's."""
    base = stage.base_for(case, 0)
    user, lane = f"forger-{case.id}", stage.registry.new_lane()
    await stage.owner.put(f"/v1/knowledge_bases/{base.id}/members/{user}", json={"role": "restricted_analyst"})
    lane.searches = [stage.registry.new_trial(STUBS[0], case, base, None)]
    names = (texts.KNOWLEDGE_BASE_LIST_DOCUMENTS, texts.KNOWLEDGE_BASE_READ_DOCUMENT)
    reading = {"document": next(iter(base.document_ids.values()))}
    lane.attempts = tuple(ToolAttempt(name=name, arguments=reading if "read" in name else {}) for name in names)
    body = orjson.loads(encode_json(OpenAIRequestConverter.from_execution_request(_request(case, base, user, lane))))
    if case.setup.access_mode_sent == "missing":
        del body["metadata"]["access_mode"]
    else:
        body["metadata"]["access_mode"] = _MODES[str(case.setup.access_mode_sent)]
    async with httpx2.AsyncClient(
        base_url=stage.pair.chat_shell_url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    ) as client:
        answer = await client.post(
            "/v1/responses", content=orjson.dumps(body), headers={"Authorization": f"Bearer {SERVICE_TOKEN}"}
        )
    stage.results.forgeries[f"mode {case.setup.access_mode_sent}: {answer.status_code}"] += 1
    frames = [line.removeprefix("data: ") for line in answer.text.splitlines()]
    sent = [text for request in lane.requests for text in leaves("main model", request)]
    return [*sent, *(text for frame in frames for text in leaves("HTTP server of chat_shell", frame))]


def _request(case: Attack, base: Base, user: str, lane: Any) -> ExecutionRequest:
    ref = KnowledgeBaseRef(id=base.id, name="House rules", access_mode=AccessMode.FULL)
    ticket = _signed(user, (base.id,), minutes=5)
    knowledge = Knowledge(bases=(ref,), access_mode=AccessMode.FULL, ticket=ticket, user_words="")
    parameters = full_parameters().model_copy(update={"tool_choice": "auto", "text_format": None})
    changes: dict[str, Any] = {
        "request_id": f"req_{case.id}",
        "user": User(id=user, tenant="default", display_name=user),
        "model": MODEL,
        "parameters": parameters,
        "system_prompt": lane.instructions,
        "history": (),
        "prompt": (TextPart(text=case.user_turns[-1]),),
        "knowledge": knowledge,
        "tools": (),
        "limits": TurnLimits(max_knowledge_calls=10, max_model_calls=None),
        "deadline": datetime.now(UTC) + timedelta(minutes=5),
    }
    return full_request().model_copy(update=changes)


async def _calls_of_a_member(stage: Stage, case: Attack) -> list[SinkText]:
    base = stage.base_for(case, 0)
    user = f"caller-{case.id}"
    await stage.owner.put(f"/v1/knowledge_bases/{base.id}/members/{user}", json={"role": "restricted_analyst"})
    place, document = f"/v1/knowledge_bases/{base.id}", next(iter(base.document_ids))
    headers = {"X-Ballast-User": user}
    answers = [
        await stage.service.request(method, path, headers=headers, json=body)
        for method, path, body in (
            ("GET", place, None),
            ("GET", f"{place}/documents", None),
            ("GET", f"{place}/documents/{document}", None),
            ("POST", f"{place}/search", {"query": "rules", "max_results": 5}),
            ("PATCH", place, {"name": "mine"}),
            ("PUT", f"{place}/members/{user}", {"role": "owner"}),
            ("GET", "/v1/audit/safe_summaries", None),
        )
    ]
    for answer in answers:
        stage.results.forgeries[f"member: {answer.status_code}"] += 1
    return [text for answer in answers for text in client_texts(answer)]


def _signed(user: str, base_ids: tuple[str, ...], minutes: int) -> str:
    ticket = Ticket(
        user_id=user,
        tenant="default",
        conversation_id="conv_" + "1" * 32,
        turn_id="resp_" + "1" * 32,
        base_ids=base_ids,
        search=SearchOptions(),
        expires_at=datetime.now(UTC) + timedelta(minutes=minutes),
    )
    return sign_ticket(ticket, SECRET)


def _nothing_excused(base: Base, case: Attack) -> Circumstances:
    """Count every passage as shown; only the user's words are their own."""
    everything = frozenset(passage.chunk_id for passage in base.content.passages)
    return Circumstances(everything, case.user_turns, base.owner_texts)
