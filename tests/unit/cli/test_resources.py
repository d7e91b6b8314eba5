"""The commands over bases, members, keys, agents, prompts and the audit: what they call, and what they show."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import pytest

from shared.receipts import END, FIRST_LINK, ReceiptSigner
from tests.fakes.ballast_api import FakeBallast, answer, page, refusal
from tests.unit.cli.conftest import Command

KB = "/v1/knowledge_bases/kb_1"
CALLS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("bases create Tea --summary All", "POST /v1/knowledge_bases", {"name": "Tea", "summary": "All"}),
    (
        "bases create Tea --grade strict",
        "POST /v1/knowledge_bases",
        {"name": "Tea", "summary": "", "restricted_grade": "strict"},
    ),
    ("bases grade Handbook strict", f"PATCH {KB}", {"restricted_grade": "strict"}),
    ("bases support Handbook 5", f"PATCH {KB}", {"support": 5}),
    ("bases content Handbook records", f"PATCH {KB}", {"content": "records"}),
    ("bases show Handbook", f"GET {KB}", None),
    ("bases delete Handbook --yes", f"DELETE {KB}", None),
    ("bases search Handbook boil", f"POST {KB}/search", {"query": "boil"}),
    ("members set Handbook ann/b reader", f"PUT {KB}/members/ann%2Fb", {"role": "reader"}),
    ("members show kb_1 ann", f"GET {KB}/members/ann", None),
    ("members show --base kb_1 ann", f"GET {KB}/members/ann", None),
    ("members set ann --base=Handbook reader", f"PUT {KB}/members/ann", {"role": "reader"}),
    ("members delete kb_1 ann --yes", f"DELETE {KB}/members/ann", None),
    ("members set Handbook group:Tea reader", f"PUT {KB}/members/groups/grp_1", {"role": "reader"}),
    ("members show Handbook group:grp_1", f"GET {KB}/members/groups/grp_1", None),
    ("members delete Handbook group:Tea --yes", f"DELETE {KB}/members/groups/grp_1", None),
    ("groups create Tea", "POST /v1/groups", {"name": "Tea", "source": "api"}),
    ("groups create /a/b --of-tokens", "POST /v1/groups", {"name": "/a/b", "source": "claim"}),
    ("groups show Tea", "GET /v1/groups/grp_1", None),
    ("groups rename grp_1 Mate", "PATCH /v1/groups/grp_1", {"name": "Mate"}),
    ("groups delete Tea --yes", "DELETE /v1/groups/grp_1", None),
    ("groups add Tea ann/b", "PUT /v1/groups/grp_1/members/ann%2Fb", None),
    ("groups remove Tea ann --yes", "DELETE /v1/groups/grp_1/members/ann", None),
    ("keys create ann", "POST /v1/api_keys", {"user_id": "ann", "role": "user", "tenant": "default"}),
    ("keys show key_1", "GET /v1/api_keys/key_1", None),
    ("keys rotate key_1 --overlap-seconds 0", "POST /v1/api_keys/key_1/rotate", {"overlap_seconds": 0}),
    ("keys delete key_1 --yes", "DELETE /v1/api_keys/key_1", None),
    (
        "agents create butler --base Handbook --instructions Polite",
        "PUT /v1/agents/butler",
        {"instructions": "Polite", "knowledge_base_ids": ["kb_1"]},
    ),
    ("agents show butler", "GET /v1/agents/butler", None),
    ("agents delete butler --yes", "DELETE /v1/agents/butler", None),
]
TEA = ({"id": "grp_1", "name": "Tea", "source": "api"}, {"id": "grp_2", "name": "Twice", "source": "api"})
LISTS = [
    ("bases list", "GET /v1/knowledge_bases"),
    ("bases documents Handbook", f"GET {KB}/documents"),
    ("members list Handbook", f"GET {KB}/members"),
    ("members list --base Handbook", f"GET {KB}/members"),
    ("groups list", "GET /v1/groups"),
    ("groups members Tea", "GET /v1/groups/grp_1/members"),
    ("keys list", "GET /v1/api_keys"),
    ("agents list", "GET /v1/agents"),
    ("audit", "GET /v1/audit/safe_summaries"),
]


@pytest.fixture(autouse=True)
def handbook(backend: FakeBallast) -> None:
    backend.bases = {"kb_1": "Handbook"}
    backend.on("GET /v1/groups", lambda request, _: page([dict(each) for each in TEA], request))


@pytest.mark.parametrize(("line", "call", "body"), CALLS)
def test_a_command_makes_its_call_and_shows_the_answer(
    command: Command, backend: FakeBallast, line: str, call: str, body: dict[str, Any] | None
) -> None:
    backend.on(call, lambda _, __: answer({"object": "thing", "id": "x_1", "key": "shown once"}))
    ran = command(*line.split(), "--json")
    assert (ran.exit_code, ran.lines_of_json) == (0, [{"object": "thing", "id": "x_1", "key": "shown once"}])
    assert backend.calls[-1] == call
    assert backend.bodies[-1:] == ([body] if body is not None else [])
    assert command(*line.split()).exit_code == 0


def test_members_of_an_object_that_are_empty_are_not_shown(command: Command, backend: FakeBallast) -> None:
    backend.on("GET /v1/agents/butler", lambda _, __: answer({"id": "x_1", "files": [], "left_out_words": {}}))
    assert command("agents", "show", "butler").out == "id: x_1\n"


@pytest.mark.parametrize(("line", "call"), LISTS)
def test_a_list_is_shown_with_all_its_pages(command: Command, backend: FakeBallast, line: str, call: str) -> None:
    items = [{"id": f"i_{number}", "name": f"n{number}", "created_at": 0} for number in range(7)]
    if call != "GET /v1/knowledge_bases":
        backend.on(call, lambda request, _: page(items, request))
    else:
        backend.bases = {str(item["id"]): str(item["name"]) for item in items}
    ran = command(*line.split(), "--json")
    (shown,) = ran.lines_of_json
    assert [item["id"] for item in shown["data"]] == [item["id"] for item in items]
    titles, *rows = command(*line.split()).out.splitlines()
    assert len(rows) == 7
    assert titles.count("\t") == rows[0].count("\t")
    assert titles[0].isalpha()


def test_a_search_has_titles_too(command: Command, backend: FakeBallast) -> None:
    hit = {"score": 0.5, "document": "green\ttea.md", "heading_path": ["Tea"], "text": "Boil\nit."}
    backend.on(f"POST {KB}/search", lambda _, __: answer({"data": [hit]}))
    shown = command("bases", "search", "Handbook", "boil").out
    assert shown == 'score\tdocument\theading path\ttext\n0.5\tgreen tea.md\t["Tea"]\tBoil it.\n'


def test_a_refusal_has_its_exit_code(command: Command, backend: FakeBallast) -> None:
    backend.on("GET /v1/api_keys", lambda _, __: refusal(403, "Only administrators may do this.", "permission_error"))
    ran = command("keys", "list", "--json")
    assert (ran.exit_code, ran.out) == (4, "")
    assert ran.err.startswith("Only administrators may do this.\nWhat to do: ")
    backend.on("GET /v1/agents/none", lambda _, __: refusal(404, "There is no such agent."))
    assert command("agents", "show", "none").exit_code == 5
    backend.on("GET /v1/agents/none", lambda _, __: refusal(500, "The server had an error."))
    assert command("agents", "show", "none").exit_code == 6


@pytest.mark.parametrize("line", [line for line, call, _ in CALLS if call.startswith("DELETE")])
def test_nothing_is_deleted_unasked(command: Command, backend: FakeBallast, line: str) -> None:
    ran = command(*line.removesuffix(" --yes").split())
    assert (ran.exit_code, backend.calls) == (2, [])
    assert "add --yes" in ran.err


def test_an_agent_may_come_from_a_file(command: Command, backend: FakeBallast, tmp_path: Path) -> None:
    backend.on("PUT /v1/agents/butler", lambda _, __: answer({"name": "butler"}))
    (tmp_path / "agent.json").write_text('{"reminder": "Be short."}')
    command("agents", "create", "butler", "--definition", str(tmp_path / "agent.json"))
    assert backend.bodies[-1] == {"reminder": "Be short."}
    (tmp_path / "agent.json").write_text("{")
    assert command("agents", "create", "butler", "--definition", str(tmp_path / "agent.json")).exit_code == 2
    assert command("agents", "create", "butler", "--definition", str(tmp_path / "none.json")).exit_code == 2


def test_the_audit_is_narrowed_and_bounded(command: Command, backend: FakeBallast) -> None:
    asked: list[httpx2.QueryParams] = []

    def records(request: httpx2.Request, _match: object) -> httpx2.Response:
        asked.append(request.url.params)
        return page([{"id": f"a_{number}"} for number in range(9)], request)

    backend.on("GET /v1/audit/safe_summaries", records)
    ran = command("audit", "--user", "ann", "--reason", "risk", "--limit", "4", "--json")
    assert len(ran.lines_of_json[0]["data"]) == 4
    assert (asked[0]["user_id"], asked[0]["reason"]) == ("ann", "risk")


def test_receipts_are_exported_and_verified_without_a_service(
    command: Command, backend: FakeBallast, tmp_path: Path
) -> None:
    signer, file = ReceiptSigner("secret"), tmp_path / "receipts.jsonl"
    sealed, previous = list[dict[str, Any]](), FIRST_LINK
    for number in range(1, 6):
        receipt = signer.seal({"object": "receipt", "turn_id": f"resp_{number}"}, number, previous)
        previous = receipt.digest
        sealed.append({"id": str(number), **receipt._asdict()})
    end = {**signer.seal({"object": END}, 6, previous)._asdict(), "public_key": signer.public_key}
    backend.on("GET /v1/audit/receipts", lambda request, _: page(sealed, request))
    backend.on("GET /v1/audit/receipts/end", lambda _, __: answer(end))
    assert signer.public_key in command("receipts", "export", str(file)).out
    asked = len(backend.calls)
    verify = ("receipts", "verify", str(file), "--key", signer.public_key)
    whole = command(*verify)
    assert (whole.exit_code, whole.out, len(backend.calls)) == (0, "The 5 receipts are whole.\n", asked)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[1:]))
    broken = command(*verify)
    assert broken.exit_code == 1
    assert "receipt 1 is missing" in broken.err
    shown = command("receipts", "of-document", "doc_1", "--json").lines_of_json
    assert [row["turn_id"] for row in shown[0]["data"]] == [f"resp_{number}" for number in range(1, 6)]


@pytest.mark.parametrize("named", [("doc_1",), ("Handbook", "on-call.md")], ids=["by id", "by name"])
def test_answers_that_rest_on_a_document_are_found(
    named: tuple[str, ...], command: Command, backend: FakeBallast
) -> None:
    asked = list[httpx2.QueryParams]()

    def receipts(request: httpx2.Request, _match: object) -> httpx2.Response:
        asked.append(request.url.params)
        return page([], request)

    backend.on("GET /v1/audit/receipts", receipts)
    backend.on("GET /v1/knowledge_bases", lambda request, _: page([{"id": "kb_1", "name": "Handbook"}], request))
    documents = [{"id": "doc_0", "name": "other.md"}, {"id": "doc_1", "name": "on-call.md"}]
    backend.on("GET /v1/knowledge_bases/kb_1/documents", lambda request, _: page(documents, request))
    assert command("receipts", "of-document", *named).exit_code == 0
    assert [query["document_id"] for query in asked] == ["doc_1"]
    unknown = command("receipts", "of-document", "Handbook", "gone.md")
    assert (unknown.exit_code, 'no document "gone.md" in the base "Handbook"' in unknown.err) == (5, True)


PROMPTS: dict[str, Any] = {
    "object": "list",
    "data": [
        {
            "call": 1, "epoch": 2, "epoch_reason": "tools_changed", "reused_tokens": 30, "cached_tokens": None,
            "messages": [
                {"kind": "system", "role": "system", "content": "Be brief.", "tokens": 30, "reused": True},
                {"kind": "user", "role": "user", "content": "x" * 1000, "tokens": 12, "reused": False},
                {"kind": "assistant", "role": "assistant", "content": None, "tokens": 3, "reused": False,
                 "tool_calls": [{"function": {"name": "knowledge_base_search"}}]},
            ],
        }
    ]
}  # fmt: skip


def test_prompts_show_what_was_sent_before(command: Command, backend: FakeBallast) -> None:
    backend.on("GET /v1/responses/resp_1/prompts", lambda _, __: answer(PROMPTS))
    ran = command("prompts", "resp_1")
    assert "Call 1, epoch 2, which began by tools_changed" in ran.out
    assert "45 tokens of messages, 30 of them sent before; the provider did not say" in ran.out
    assert "│ system (system, 30 tokens)\n│   Be brief." in ran.out
    assert "knowledge_base_search" in ran.out
    assert "x" * 1000 not in ran.out
    assert "x" * 1000 in command("prompts", "resp_1", "--whole").out
    assert command("prompts", "resp_1", "--json").lines_of_json == [PROMPTS]


def test_prompts_name_a_miss_and_what_other_layouts_would_have_cost(command: Command, backend: FakeBallast) -> None:
    costs = {"layout": "results_forgotten", "sent_tokens": 50, "cached_tokens": 40, "cost_tokens": 14}
    told = {"cache_miss": "evicted", "cache_diagnosis": "unchanged", "layouts": [costs]}
    told |= {"shortfall": "policy", "placement": "classic", "rewritten_tokens": 7}
    call = {**PROMPTS["data"][0], **told}
    asked: list[httpx2.QueryParams] = []

    def prompts(request: httpx2.Request, _match: object) -> httpx2.Response:
        asked.append(request.url.params)
        return answer({"data": [call]})

    backend.on("GET /v1/responses/resp_1/prompts", prompts)
    ran = command("prompts", "resp_1", "--layouts")
    assert "missed: evicted; the provider says: unchanged" in ran.out
    assert "moved by the placement classic or the context policy: 7 tokens" in ran.out
    assert "results forgotten: 50 tokens, 40 of them from a cache, cost as much as 14" in ran.out
    assert dict(asked[0]) == {"layouts": "true"}


def test_prompts_of_no_answer_are_not_guessed(command: Command, backend: FakeBallast) -> None:
    assert command("prompts").exit_code == 2
    assert not backend.calls


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(command: Command, shell: str) -> None:
    ran = command("completion", shell)
    assert ran.exit_code == 0
    assert "_BALLAST_COMPLETE" in ran.out


@pytest.mark.parametrize("line", ["nothing", "bases", "ask", "members set kb_1 ann king", "add"])
def test_wrong_use_says_what_is_right(command: Command, backend: FakeBallast, line: str) -> None:
    ran = command(*line.split())
    assert (ran.exit_code, backend.calls) == (2, [])
    assert "Usage: ballast" in ran.err


def test_who_adds_the_first_restricted_member_is_asked_for_the_grade(command: Command, backend: FakeBallast) -> None:
    members = [{"id": "ann", "role": "owner"}]
    backend.on(f"GET {KB}/members", lambda request, _: page(members, request))
    backend.on(f"PATCH {KB}", lambda _, __: answer({"id": "kb_1"}))
    backend.on(f"PUT {KB}/members/bob", lambda _, __: answer({"user_id": "bob"}))
    set_bob = "members", "set", "Handbook", "bob", "restricted_analyst"
    assert command(*set_bob).exit_code == 0
    assert backend.bodies == [{"role": "restricted_analyst"}]
    with at_terminal("strict\n"):
        ran = command(*set_bob)
    assert backend.bodies[1:] == [{"restricted_grade": "strict"}, {"role": "restricted_analyst"}]
    assert "Night shift: too much depends on one person (serious)." in ran.err
    members.append({"id": "cid", "role": "restricted_analyst"})
    with at_terminal(""):
        assert command(*set_bob).exit_code == 0
    assert backend.bodies[3:] == [{"role": "restricted_analyst"}]
    assert command(*set_bob, "--grade", "open").exit_code == 0
    assert backend.bodies[4:] == [{"restricted_grade": "open"}, {"role": "restricted_analyst"}]


@contextmanager
def at_terminal(typed: str) -> Generator[None]:
    """Have somebody type this."""
    before, sys.stdin = sys.stdin, Typed(typed)
    try:
        yield
    finally:
        sys.stdin = before


class Typed(StringIO):
    """A terminal at which this is typed."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("name", "said"), [("None", "There is no group"), ("Twice", "Several groups are named")])
def test_a_group_is_named_by_the_one_name_that_it_has(
    command: Command, backend: FakeBallast, name: str, said: str
) -> None:
    groups = [*TEA, {"id": "grp_3", "name": "Twice", "source": "claim"}]
    backend.on("GET /v1/groups", lambda request, _: page([dict(each) for each in groups], request))
    ran = command("groups", "add", name, "ann")
    assert ran.exit_code != 0
    assert said in ran.err
    assert backend.puts == []
