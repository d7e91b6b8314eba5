"""Plays a context case: its people, their turns in one conversation, and what each may read of it afterwards."""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import orjson

from tests.leaks.context.cases import FILLER, Case, Step, filled, strings_of
from tests.leaks.context.script import Asked
from tests.leaks.context.staging import LABELLED, SECOND, THIRD, TINY, UNLABELLED, ContextStage, skill_name
from tests.leaks.pair import MODEL
from tests.leaks.sinks import SinkText
from tests.leaks.visits import ACT_FOR, client_texts

FULL = "reader"
_ROLES = {"reader": "reader", "analyst": "restricted_analyst"}
_FILLING = Step(says=FILLER * 90, main="Well.", searches=False)
_MOST_FILLINGS = 6
_HELD_SECONDS = 30


@dataclass
class Played:
    """What became of a case: its turns, what restricted people received, and which requests were refused."""

    case: Case
    own_texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    planted: list[str] = field(default_factory=list[str])
    asked: list[Asked] = field(default_factory=list[Asked])
    answers: list[SinkText] = field(default_factory=list[SinkText])
    received: list[SinkText] = field(default_factory=list[SinkText])
    refusals: list[str] = field(default_factory=list[str])
    conversation: str = ""
    restricted: tuple[str, ...] = ()


class Player:
    """Plays one case with people of its own."""

    def __init__(self, stage: ContextStage, case: Case, number: int) -> None:
        self._stage = stage
        self._case = case
        self._texts = stage.texts
        self._people = {who: f"{who}-{number}" for who in ("reader", "analyst")}
        for who, name in case.world.get("names", {}).items():
            self._people[who] = f"{'.'.join(filled(name, stage.texts).split())[:60]}-{number}"
        self._agent = f"agent-{number}"
        self._full: set[str] = set()
        self._responses: list[tuple[str, str]] = []
        self._needs_tiny = case.kind == "summaries" or "long_filler" in str(case.world)
        self.played = Played(case)

    async def play(self) -> Played:
        """Take all steps, then let each restricted member read all there is."""
        self._stage.script.begin(self._texts)
        self._stage.main.reset()
        for who in {*self._case.members, "analyst"}:
            await self._admit(who, _ROLES[who])
        await self._open_conversation()
        if "agent" in self._case.world:
            await self._put_agent(dict(self._case.world["agent"]))
        self.played.planted += strings_of(filled(dict(self._case.world), self._texts))
        for step in self._case.turns:
            await self._take(step)
        self.played.restricted = tuple(who for who in self._case.members if who not in self._full)
        for who in self.played.restricted:
            await self._read_all(who)
        return self.played

    async def _take(self, step: Step) -> None:
        if "demote" in step:
            await self._admit(step["demote"], "restricted_analyst")
        elif "compact" in step:
            await self._compact(step["compact"], self._last_asker())
        else:
            if summary := step.get("compacts") or step.get("compacts_mid"):
                await self._compact(summary, step["by"])
            await self._turn(step)

    async def _compact(self, summary: str, who: str) -> None:
        script = self._stage.script
        script.summary, before = summary, script.summaries
        for _ in range(_MOST_FILLINGS):
            await self._turn(_FILLING | {"by": who})
            if script.summaries > before:
                return
        self.played.refusals.append("never compacted")

    def _last_asker(self) -> str:
        return self._responses[-1][0] if self._responses else self._case.members[0]

    async def _turn(self, step: Step) -> None:
        who = step["by"]
        asked = self._new_asked(step)
        body = self._body(step, asked)
        if "item_references" in step:
            body["input"] = [*await self._references(who), {"role": "user", "content": body["input"]}]
        if "function_output" in step:
            await self._answer_call(step, asked, body)
            return
        running = step.get("running", ())
        if not running:
            self._take_answer(who, await self._post(who, body))
            return
        asked.holds = True
        posted = asyncio.create_task(self._post(who, body))
        waiting: list[tuple[str, str]] = []
        try:
            async with asyncio.timeout(_HELD_SECONDS):
                await self._stage.main.wait_held()
            for other in running:
                waiting += await self._meanwhile(other)
        finally:
            if not any(other.get("if_running") == "cancel" for other in running):
                self._stage.main.release()
        self._take_answer(who, await posted)
        for name, response_id in waiting:
            answer = await self._get(name, f"/v1/responses/{response_id}?stream=true")
            self._note(name, answer)

    async def _meanwhile(self, other: Step) -> list[tuple[str, str]]:
        if "demote" in other:
            await self._admit(other["demote"], "restricted_analyst")
            return []
        asked = self._new_asked({"main": "{seen}", **other})
        body = self._body(other, asked) | {"background": True, "if_running": other["if_running"]}
        answer = await self._post(other["by"], body)
        if answer.status_code != 200:
            self.played.refusals.append(f"{answer.status_code} {answer.text[:200]}")
            return []
        self._responses.append((other["by"], answer.json()["id"]))
        return [self._responses[-1]]

    async def _answer_call(self, step: Step, asked: Asked, body: dict[str, Any]) -> None:
        parameters: dict[str, Any] = {"type": "object", "properties": {}}
        function = {"type": "function", "name": "look", "parameters": parameters}
        asked.step = dict(step) | {"main_calls": [["look", {}]], "searches": False}
        first = await self._post(step["by"], body | {"tools": [*body["tools"], function]})
        self._take_answer(step["by"], first)
        calls = [item for item in first.json().get("output", ()) if item["type"] == "function_call"]
        output = filled(step["function_output"], self._texts)
        self.played.planted.append(output)
        outputs = [{"type": "function_call_output", "call_id": call["call_id"], "output": output} for call in calls]
        again = self._new_asked({**step, "says": ""})
        words = {"role": "user", "content": f"Go on. ref {again.mark}"}
        self._take_answer(step["by"], await self._post(step["by"], body | {"input": [*outputs, words]}))

    def _new_asked(self, step: Step) -> Asked:
        asked = self._stage.script.new_turn(self._calls_named(step), is_full=step["by"] in self._full)
        if step["by"] in self._full or self._stage.script.current is None or not step.get("if_running"):
            self._stage.script.current = asked
        self.played.asked.append(asked)
        return asked

    def _calls_named(self, step: Step) -> Step:
        """Call the tool by the name of the server that the case has labelled or not, and the skill by its own."""
        is_open = self._case.world.get("tools", {}).get("echo", {}).get("accepts_restricted", False)
        names = {"echo__say": f"{LABELLED if is_open else UNLABELLED}__echo"}
        calls = [
            [names.get(name, name), {"name": skill_name(self._case.name)} if name == "read_skill" else arguments]
            for name, arguments in step.get("main_calls", ())
        ]
        return {**step, "main_calls": calls}

    def _body(self, step: Step, asked: Asked) -> dict[str, Any]:
        words = f"{filled(step['says'], self._texts)} ref {asked.mark}"
        self.played.own_texts.setdefault(step["by"], []).append(words)
        tools: list[dict[str, Any]] = [{"type": "file_search", "vector_store_ids": [self._stage.base.id]}]
        if "tools" in self._case.world:
            tools += ({"type": "mcp", "server_label": label} for label in (LABELLED, UNLABELLED))
        body: dict[str, Any] = {"input": words, "tools": tools}
        if files := [self._file(each) for each in step.get("files", ())]:
            body["input"] = [{"role": "user", "content": [*files, {"type": "input_text", "text": words}]}]
        if "models" in step:
            body["models"] = [MODEL, SECOND, THIRD][: step["models"]]
        elif step.get("plain"):
            body["model"] = MODEL
        elif "agent" in self._case.world or "skills" in self._case.world:
            body["model"] = self._agent
        elif self._needs_tiny:
            body["model"] = TINY
        if "previous" in step and self._responses:
            return body | {"previous_response_id": self._responses[0 if step["previous"] == "first" else -1][1]}
        return body | ({"conversation": self.played.conversation} if self.played.conversation else {})

    def _file(self, given: Any) -> dict[str, str]:
        written = {"name": "notes.txt", "text": given} if isinstance(given, str) else given
        named: dict[str, str] = filled(written, self._texts)
        self.played.planted += named.values()
        content = base64.b64encode(named["text"].encode()).decode()
        return {
            "type": "input_file",
            "filename": named["name"],
            "file_data": f"data:text/plain;base64,{content}",
        }

    async def _put_agent(self, agent: Step) -> None:
        owner = "owner" if agent["owner"] == "owner" else self._people["analyst"]
        headers, filling = {ACT_FOR: owner}, filled(agent, self._texts)
        fields = {
            name: filling[name]
            for name in ("instructions", "system_prompt", "reminder", "placement")
            if name in filling
        }
        ids: list[str] = []
        for text in filling.get("files", ()):
            files = {"file": ("notes.txt", text.encode())}
            answer = await self._stage.service.post(
                "/v1/files", data={"purpose": "user_data"}, files=files, headers=headers
            )
            assert answer.status_code == 201, answer.text
            ids.append(answer.json()["id"])
        if self._needs_tiny:
            fields["model"] = TINY
        if "skills" in self._case.world:
            fields["skills"] = [skill_name(self._case.name)]
        if "tools" in agent:
            fields["tools"] = [{"type": "mcp", "server_label": UNLABELLED}]
        is_own = "users" in agent
        visibility = "private" if is_own else "tenant"
        whole = fields | {"file_ids": ids, "visibility": visibility, "knowledge_base_ids": [self._stage.base.id]}
        answer = await self._stage.service.put(f"/v1/agents/{self._agent}", json=whole, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        for who in agent.get("users", ()):
            place = f"/v1/agents/{self._agent}/members/{self._people[who]}"
            answer = await self._stage.service.put(place, json={"role": "reader"}, headers=headers)
            assert answer.status_code in (200, 201), answer.text

    async def _open_conversation(self) -> None:
        if "skills" in self._case.world:
            await self._put_agent({"owner": "owner"})
        first, *others = self._case.members
        answer = await self._stage.service.post("/v1/conversations", json={}, headers=self._headers(first))
        assert answer.status_code in (200, 201), answer.text
        self.played.conversation = answer.json()["id"]
        for other in others:
            place = f"/v1/conversations/{self.played.conversation}/members/{self._people[other]}"
            put = await self._stage.service.put(place, json={"role": "writer"}, headers=self._headers(first))
            assert put.status_code in (200, 201), put.text

    async def _admit(self, who: str, role: str) -> None:
        place = f"/v1/knowledge_bases/{self._stage.base.id}/members/{self._people[who]}"
        answer = await self._stage.owner.put(place, json={"role": role})
        assert answer.status_code in (200, 201), answer.text
        (self._full.add if role == FULL else self._full.discard)(who)
        if role != FULL:
            self.played.answers.clear()

    async def _references(self, who: str) -> Sequence[dict[str, str]]:
        place = f"/v1/conversations/{self.played.conversation}/items"
        answer = await self._get("reader", place)
        return [{"type": "item_reference", "id": item["id"]} for item in answer.json()["data"]]

    async def _post(self, who: str, body: dict[str, Any]) -> httpx2.Response:
        return await self._stage.service.post("/v1/responses", json=body, headers=self._headers(who))

    async def _get(self, who: str, place: str) -> httpx2.Response:
        return await self._stage.service.get(place, headers=self._headers(who))

    def _headers(self, who: str) -> dict[str, str]:
        return {ACT_FOR: self._people[who]}

    def _take_answer(self, who: str, answer: httpx2.Response) -> None:
        if answer.status_code != 200:
            self.played.refusals.append(f"{answer.status_code} {answer.text[:200]}")
        else:
            said = orjson.loads(answer.content)
            self._responses.append((who, said["id"]))
            if said["status"] == "failed":
                self.played.refusals.append(f"failed {said['error']}")
        self._note(who, answer)

    def _note(self, who: str, answer: httpx2.Response) -> None:
        if who in self._full:
            return
        self.played.received += client_texts(answer)
        if answer.headers.get("content-type", "").startswith("application/json"):
            items = orjson.loads(answer.content).get("output") or ()
            said = [part for item in items for part in item.get("content") or () if item["type"] == "message"]
            self.played.answers += (SinkText("answer", part.get("text", "")) for part in said)

    async def _read_all(self, who: str) -> None:
        kinds = ("", "?stream=true", "/prompts", "/input_items")
        places = [f"/v1/responses/{each}{kind}" for _, each in dict.fromkeys(self._responses) for kind in kinds]
        held = f"/v1/conversations/{self.played.conversation}"
        for place in (*places, held, f"{held}/items", f"/v1/agents/{self._agent}", "/v1/files"):
            self.played.received += client_texts(await self._get(who, place))
