"""A body at an edge is refused with its reason, or all of its text reaches the model, or what does not is named."""

import json
import re

import pytest

from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.served_turns import serve_api
from tests.unit.backend.turns.edge_bodies import ASKED, CHAT, RAW, RESPONSES, TALKED

CASES: dict[str, tuple[str, bytes]] = {
    **{name: (RESPONSES, json.dumps({"model": "demo-model", **body}).encode()) for name, body in ASKED.items()},
    **{name: (CHAT, json.dumps({"model": "demo-model", **body}).encode()) for name, body in TALKED.items()},
    **{name: (RESPONSES, body) for name, body in RAW.items()},
}
MARK = re.compile(rb"Mark[A-Za-z0-9]*")


@pytest.mark.parametrize("name", CASES)
async def test_no_text_is_lost_in_silence(name: str) -> None:
    path, body = CASES[name]
    async with serve_api(answer("Well.")) as api:
        told = await api.http.post(path, content=body, headers={"content-type": "application/json"})
        shell = api.turns.chat_shell
        assert isinstance(shell, ScriptedChatShell)
        sent = b"".join(request.model_dump_json().encode() for request in shell.requests)
    assert told.status_code < 500, told.text
    if told.status_code >= 400:
        error = told.json()["error"]
        assert error["message"]
        assert not sent
        return
    lost = {mark for mark in MARK.findall(body) if mark not in sent}
    assert not lost or told.headers["x-ballast-ignored"], lost
