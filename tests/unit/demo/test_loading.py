"""Filling a backend with the demo's users and knowledge."""

import re
import shlex
from itertools import count
from pathlib import Path

import pytest

from deploy.demo.announcement import calm_lines, curl_line, export_variables, first_steps
from deploy.demo.bases import BASES, DemoBase
from deploy.demo.loading import Demo, Embedded, load, passages_with_vectors
from deploy.demo.plan import ROOT, FreePorts, plan
from deploy.demo.public_api import Answer
from deploy.demo.run import how_searches_rank

DEMO = Demo("key", "other", "kb_1", "kb_2", "kb_3")


class FakeBackend:
    """Keys, bases, documents and members in memory."""

    def __init__(self):
        self.numbers = count(1)
        self.users_by_key = {"admin": "admin"}
        self.bases: dict[str, Answer] = {}
        self.documents: dict[str, bytes] = {}
        self.members: dict[str, str] = {}

    def connect(self, key: str) -> "FakeCaller":
        return FakeCaller(self, key)

    def load(self, directory: Path) -> Demo:
        return load(self.connect, "admin", directory)


class FakeCaller:
    """One key's view."""

    def __init__(self, backend: FakeBackend, key: str):
        self.backend = backend
        self.key = key

    def accepts_the_key(self) -> bool:
        return self.key in self.backend.users_by_key

    def call(self, method: str, path: str, body: Answer | bytes | None = None) -> Answer:
        assert self.accepts_the_key()
        match method, path.partition("?")[0].split("/")[2:], body:
            case "POST", ["api_keys"], {"user_id": str(user_id)}:
                key = f"key-{next(self.backend.numbers)}"
                self.backend.users_by_key[key] = user_id
                return {"key": key}
            case "GET", ["knowledge_bases"], None:
                return {"data": list(self.backend.bases.values())}
            case "POST", ["knowledge_bases"], {"name": name}:
                base: Answer = {"id": f"kb_{next(self.backend.numbers)}", "name": name}
                self.backend.bases[str(base["id"])] = base
                return base
            case "PUT", ["knowledge_bases", base_id, "documents", name], bytes(text):
                self.backend.documents[f"{base_id}/{name}"] = text
                return {}
            case "PUT", ["knowledge_bases", base_id, "members", user_id], {"role": str(role)}:
                self.backend.members[f"{base_id}/{user_id}"] = role
                return {}
            case _:
                raise AssertionError(f"unexpected {method} {path}")


def test_a_second_run_finds_everything_in_place(tmp_path: Path):
    backend = FakeBackend()
    first = backend.load(tmp_path)
    counts = len(backend.users_by_key), len(backend.bases), len(backend.documents)
    assert backend.load(tmp_path) == first
    assert (len(backend.users_by_key), len(backend.bases), len(backend.documents)) == counts


def test_keys_of_another_database_are_made_anew(tmp_path: Path):
    FakeBackend().load(tmp_path)
    other = FakeBackend()
    other.numbers = count(100)
    demo = other.load(tmp_path)
    assert other.users_by_key[demo.user_key] == "demo-user"
    assert other.users_by_key[demo.restricted_key] == "demo-analyst"


def test_the_analyst_is_restricted_where_it_matters(tmp_path: Path):
    backend = FakeBackend()
    demo = backend.load(tmp_path)
    assert backend.members[f"{demo.contracts_id}/demo-analyst"] == "restricted_analyst"
    assert backend.members[f"{demo.handbook_id}/demo-analyst"] == "reader"


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.directory)
def test_bases_have_documents_and_fit_the_api(base: DemoBase):
    assert base.documents
    assert len(base.routing_hint) <= 200
    assert len(base.routing_keywords) <= 5
    assert all(len(keyword) <= 48 for keyword in base.routing_keywords)


def test_it_is_said_how_searches_rank_until_all_passages_have_vectors(tmp_path: Path):
    backend = FakeBackend()
    owner = backend.connect(backend.load(tmp_path).user_key)
    assert passages_with_vectors(owner) == Embedded(0, 0, 0)
    assert "by meaning as well in a minute or two:" in how_searches_rank(Embedded(0, 0, None))
    for base in backend.bases.values():
        base.update(embedded_chunks=1, chunks=4, embedding_seconds_left=50)
    assert passages_with_vectors(owner) == Embedded(3, 12, 150)
    assert "in about 3 minutes (3 of 12 passages so far):" in how_searches_rank(Embedded(3, 12, 150))
    assert "in about 5 minutes (0 of 600 passages so far):" in how_searches_rank(Embedded(0, 600, None))
    assert how_searches_rank(Embedded(12, 12, 0)).startswith("Searches rank by words and by meaning:")


EXPORTED = export_variables("http://127.0.0.1:8000", "http://127.0.0.1:9/metrics", DEMO)


def test_the_first_steps_are_those_of_the_command():
    variables, *steps = first_steps(EXPORTED)
    assert variables == (
        "export BALLAST_URL=http://127.0.0.1:8000 BALLAST_KEY=key BALLAST_BASE=kb_1"
        " BACKEND_URL=http://127.0.0.1:8000 METRICS_URL=http://127.0.0.1:9/metrics USER_KEY=key RESTRICTED_KEY=other"
    )
    assert [shlex.split(step)[1] for step in steps] == ["ask", "add", "ask"]


def test_a_person_reads_ten_lines_without_a_key(tmp_path: Path):
    planned = plan({}, tmp_path / "var", FreePorts(model=9999, metrics=9998))
    lines = calm_lines(planned, EXPORTED)
    assert len(lines) <= 10
    assert [line.split()[1] for line in lines if line.startswith("  ")] == ["ask", "add", "ask"]
    assert [line for line in lines if DEMO.user_key in line.split("=") or planned.admin_key in line] == []


def test_the_readme_has_the_same_first_steps():
    _, *steps = first_steps(EXPORTED)
    told = re.findall(r"^\.venv/bin/ballast (?:ask|add) .*$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    printed, written = ([shlex.split(line)[1:] for line in lines] for lines in (steps, told))
    assert [each[2:] for each in written] == [each[2:] for each in printed]
    assert [each[0] for each in written] == [each[0] for each in printed]


def test_the_printed_command_survives_the_shell():
    line = curl_line("http://127.0.0.1:8000", "key", "kb_1", "How soon?")
    assert line.count("'") == 6
    assert '"vector_store_ids": ["kb_1"]' in line
