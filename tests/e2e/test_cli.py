"""The command `ballast` against the real pair: a folder with bad files, Ctrl-C, a question, the doctor."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.ballast_command import ballast, environ_of, lines_of
from tests.e2e.conftest import Pairs
from tests.e2e.pair import Pair, lone_backend
from tests.examples import first_of
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall

pytestmark = pytest.mark.combination

GOOD, BAD = 47, 3
PIPE_BYTES = 4096
LONG = "of the kettles that are boiled in the kitchen by the pier and of those who boil them every day"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "notes"
    (place / "deep").mkdir(parents=True)
    for number in range(GOOD):
        name = f"deep/note {number:02} {LONG}.md" if number % 2 else f"notiz-{number:02} {LONG}.md"
        (place / name).write_text(f"# Kettle {number}\n\nKettle number {number} is boiled for {number} minutes.\n")
    for number in range(BAD):
        (place / f"deep/broken-{number}.pdf").write_bytes(b"%PDF-1.7 and no more")
    return place


async def test_a_folder_is_added_over_a_ctrl_c_and_answers(
    small_pair: Pair, small_model: FakeModelControl, folder: Path, tmp_path: Path
) -> None:
    environ = environ_of(small_pair, "cli-ann", tmp_path)
    add = ("add", str(folder), "--base", "Kettles", "--json")
    # What it tells does not fit into the pipe, so that it cannot end before it is interrupted.
    first = subprocess.Popen(
        [sys.executable, "-m", "cli", *add],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, pipesize=PIPE_BYTES,
    )  # fmt: skip
    assert first.stdout is not None
    told = b"".join(first.stdout.readline() for _ in range(5))
    first.send_signal(signal.SIGINT)
    rest, err = (part.decode() for part in first.communicate())
    assert first.returncode == 130, err
    assert "The same command goes on from here." in err
    assert "Traceback" not in err
    stored = [line["name"] for line in lines_of(told.decode() + rest) if line["state"] == "added"]
    assert len(stored) < GOOD

    second = ballast(environ, *add)
    assert second.returncode == 1, second.stderr
    *files, summary = lines_of(second.stdout)
    states = {line["name"]: line["state"] for line in files}
    assert {states[name] for name in stored} == {"unchanged"}
    assert sorted(name for name, state in states.items() if state == "failed") == [
        f"deep/broken-{number}.pdf" for number in range(BAD)
    ]
    assert summary["added"] + summary["unchanged"] == GOOD
    with small_pair.http(small_pair.key("cli-ann")) as caller:
        assert [base["name"] for base in caller.get("/v1/knowledge_bases").json()["data"]] == ["Kettles"]
        listed = caller.get(f"/v1/knowledge_bases/{summary['knowledge_base_id']}/documents?limit=100").json()["data"]
    assert len(listed) == GOOD

    call = ScriptedCall(name="knowledge_base_search", arguments='{"query": "How long is kettle number 7 boiled?"}')
    await small_model.script(Reply(tool_calls=(call,)), Reply(text=("Seven minutes ", "[1].")))
    asked = ballast(environ, "ask", "How long is kettle number 7 boiled?", "--base", "Kettles")
    assert asked.returncode == 0, asked.stderr
    said, _, footnote = asked.stdout.rstrip("\n").split("\n")
    assert said == "Seven minutes [1]."
    assert footnote.startswith("[1] ")
    assert footnote.removeprefix("[1] ") in {document["name"] for document in listed}
    await small_model.script(Reply(text=("You are welcome.",)))
    thanked = ballast(environ, "ask", "Thanks", "--continue", "--json")
    assert lines_of(thanked.stdout)[0]["previous_response_id"].startswith("resp_")


async def test_who_reads_one_character_and_leaves_has_been_answered_all_the_same(
    small_pair: Pair, small_model: FakeModelControl, tmp_path: Path
) -> None:
    environ = environ_of(small_pair, "cli-bob", tmp_path)
    await small_model.script(Reply(text=("Eleven.",) * 20), Reply(text=("Go on.",)))
    program = f'"{sys.executable}" -m cli ask'
    shell = f'{program} "And number 11?" | head -c 1; {program} "And?" --continue'
    done = subprocess.run(["sh", "-c", shell], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("Go on.\n"), done.stderr
    assert "And number 11?" in (await small_model.requests())[-1].body.decode()


async def test_the_doctor_finds_a_pair_well(small_pair: Pair, small_model: FakeModelControl, tmp_path: Path) -> None:
    await small_model.script(Reply(text=("ok",)))
    ran = ballast(environ_of(small_pair, "cli-ann", tmp_path), "doctor", "--json")
    assert ran.returncode == 0, ran.stdout
    assert {line["part"] for line in lines_of(ran.stdout)} >= {"backend", "key", "chat_shell", "model", "embedder"}


BROKEN = [
    (Reply(status=401, body='{"error": {"message": "no"}}'), "CHAT_SHELL_MODEL_API_KEY"),
    (Reply(status=404, body='{"error": {"message": "no"}}'), "correct CHAT_SHELL_MODEL"),
]


@pytest.mark.parametrize(("reply", "mend"), BROKEN, ids=["401", "404"])
async def test_the_doctor_names_what_a_model_refuses(
    small_pair: Pair, small_model: FakeModelControl, tmp_path: Path, reply: Reply, mend: str
) -> None:
    await small_model.script(reply)
    ran = ballast(environ_of(small_pair, "cli-ann", tmp_path), "doctor", "--json")
    (broken,) = [line for line in lines_of(ran.stdout) if not line["is_well"]]
    assert broken["part"] == "model"
    assert mend in broken["mend"]


@pytest.mark.parametrize("server", first_of("grpc", "http"))
def test_the_doctor_names_a_wrong_service_token(pairs: Pairs, small_pair: Pair, tmp_path: Path, server: str) -> None:
    target = f"grpc://{small_pair.chat_shell_grpc_target}" if server == "grpc" else small_pair.chat_shell_http_url
    changes = {"SERVICE_TOKEN": "another-token-of-the-tests", "BACKEND_CHAT_SHELL_URL": target}
    stranger = lone_backend(pairs.launch, tmp_path / "stranger", **changes)
    ran = ballast(environ_of(stranger, "cli-ann", tmp_path), "doctor", "--json")
    (broken,) = [line for line in lines_of(ran.stdout) if not line["is_well"]]
    assert (broken["part"], broken["mend"].partition(",")[0]) == (
        "chat_shell", "give backend and chat_shell the same SERVICE_TOKEN",
    )  # fmt: skip
    stranger.backend.kill()


def test_the_doctor_names_a_backend_without_chat_shell(pairs: Pairs, tmp_path: Path) -> None:
    alone = lone_backend(pairs.launch, tmp_path / "alone")
    ran = ballast(environ_of(alone, "cli-ann", tmp_path), "doctor", "--json")
    (broken,) = [line for line in lines_of(ran.stdout) if not line["is_well"]]
    assert (broken["part"], broken["mend"].partition(",")[0]) == ("chat_shell", "start chat_shell")
    alone.backend.kill()


def test_the_doctor_looks_at_the_settings_beside_it(small_pair: Pair, tmp_path: Path) -> None:
    environ = environ_of(small_pair, "cli-ann", tmp_path) | {"CHAT_SHELL_MODLE": "x"}
    ran = ballast(environ, "doctor", "--no-model", "--json")
    (broken,) = [line for line in lines_of(ran.stdout) if not line["is_well"]]
    assert broken["part"] == "chat_shell settings"
    assert "did you mean CHAT_SHELL_MODEL?" in broken["found"]
