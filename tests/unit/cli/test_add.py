"""`ballast add`: uploads what changed, names what failed, and goes on where it was broken off."""

import asyncio
import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest

from cli.api import Api
from cli.commands.add import AddOptions
from cli.commands.add import keep_in_step as watch
from cli.connection import connection_of
from cli.running import Run
from cli.uploads import Uploads, digests_of, files_below
from tests.fakes.ballast_api import KEY, FakeBallast, answer, refusal
from tests.unit.cli.conftest import Command


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"tea.md": "# Tea", "more/old tea.md": "Old", "more/coffee.md": "Coffee", "zh/茶.md": "茶", "e.md": "E"}
    return written(tmp_path / "notes", texts)


def test_a_folder_becomes_a_base(command: Command, backend: FakeBallast, folder: Path) -> None:
    ran = command("add", str(folder), "--base", "Tea")
    assert ran.exit_code == 0, ran.err
    assert {name for _, name in backend.documents} == {
        "tea.md", "more/old tea.md", "more/coffee.md", "zh/茶.md", "e.md",
    }  # fmt: skip
    assert "5 added, 0 changed, 0 unchanged, 0 failed" in ran.out
    assert "Passages: 5, found by their words; 4 of them by meaning too, the others in about 3 minutes." in ran.out
    assert "ballast ask --base Tea 'What do my files say about e?'" in ran.out


def test_what_is_there_is_not_sent_again(command: Command, backend: FakeBallast, folder: Path) -> None:
    command("add", str(folder), "--base", "Tea")
    written(folder, {"tea.md": "# Green tea", "new.md": "New"})
    backend.calls.clear()
    ran = command("add", str(folder), "--base", "Tea", "--json")
    assert sorted(backend.puts) == [f"PUT /v1/knowledge_bases/kb_1/documents/{name}" for name in ("new.md", "tea.md")]
    assert list(backend.bases) == ["kb_1"]
    *files, summary = ran.lines_of_json
    assert {file["name"]: file["state"] for file in files}["tea.md"] == "changed"
    assert [summary[state] for state in ("added", "changed", "unchanged", "failed")] == [1, 1, 4, 0]


def test_a_bad_file_is_named_and_stops_no_other(command: Command, backend: FakeBallast, folder: Path) -> None:
    written(folder, {"a.bin": "a\0b"})
    ran = command("add", str(folder), "--base", "Tea")
    assert ran.exit_code == 1
    assert "a.bin: body: a.bin is no text" in ran.err
    assert "1 of 6 files could not be read" in ran.err
    assert len(backend.documents) == 5


def test_what_was_not_read_of_a_file_is_said(command: Command, tmp_path: Path) -> None:
    folder = written(tmp_path / "scans", {"a.md": "a scan", "b.md": "B"})
    assert "a.md: Page 3 has no text." in command("add", str(folder), "--base", "Tea").err
    *files, _ = command("add", str(written(folder, {"a.md": "another scan"})), "--base", "Tea", "--json").lines_of_json
    assert {file["name"]: file["notes"] for file in files} == {"a.md": ["Page 3 has no text."], "b.md": []}


def test_where_no_file_can_be_read_none_is_said_to_be_in_the_base(command: Command, tmp_path: Path) -> None:
    ran = command("add", str(written(tmp_path / "bad", {"a.bin": "a\0b"})), "--base", "Tea")
    assert ran.exit_code == 1
    assert "1 of 1 files could not be read; 0 are in the base." in ran.err
    assert "Passages" not in ran.out


def test_hidden_files_and_links_to_folders_are_left_out(folder: Path) -> None:
    written(folder, {".git/config": "x", ".env": "x"})
    (folder / "round").symlink_to(folder, target_is_directory=True)
    assert [file.name for file in files_below(folder)] == [
        "e.md", "more/coffee.md", "more/old tea.md", "tea.md", "zh/茶.md",
    ]  # fmt: skip
    assert [file.name for file in files_below(folder / "tea.md")] == ["tea.md"]


async def test_a_run_that_was_broken_off_goes_on(tmp_path: Path) -> None:
    backend = FakeBallast({"kb_1": "Many"})
    folder = written(tmp_path / "many", {f"{number:04}.md": f"number {number}" for number in range(1000)})
    files = files_below(folder)
    reached = asyncio.Event()

    def put(request: httpx2.Request, match: re.Match[str]) -> httpx2.Response:
        backend.documents["kb_1", match[1]] = request.content
        if len(backend.documents) == 500:
            reached.set()
        return answer({})

    backend.on("PUT /v1/knowledge_bases/kb_1/documents/(.+)", put)
    async with Api(connection_of({"BALLAST_KEY": KEY}, backend.transport)) as api:
        first = asyncio.create_task(Uploads(api, "kb_1", await digests_of(api, "kb_1"), lambda _: None).run(files))
        await reached.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert 500 <= len(backend.documents) < 520
        second = Uploads(api, "kb_1", await digests_of(api, "kb_1"), lambda _: None)
        await second.run(files)
    assert len(backend.documents) == 1000
    assert len(set(backend.puts)) == len(backend.puts)
    assert second.counts.total() == 1000


def once_busy(backend: FakeBallast, first: httpx2.Response) -> None:
    answers: Sequence[httpx2.Response] = [first, answer({}, 201)]
    left = iter(answers)
    backend.on("PUT .*", lambda _, __: next(left))


def test_a_busy_backend_is_waited_for(command: Command, backend: FakeBallast, tmp_path: Path) -> None:
    busy = refusal(503, "No place left.")
    busy.headers["retry-after"] = "0"
    once_busy(backend, busy)
    ran = command("add", str(written(tmp_path / "one", {"a.md": "A"})), "--base", "Tea")
    assert (ran.exit_code, len(backend.puts)) == (0, 2)


@pytest.mark.parametrize(
    ("arguments", "changes", "exit_code", "said"),
    [
        (("--base", "Tea"), {"BALLAST_KEY": "wrong"}, 4, "This API key is not valid."),
        (("--base", "kb_9"), {}, 5, "no base with the id kb_9"),
        ((), {}, 2, "add --base with a name of your choice"),
        (("--base", "Twice"), {}, 2, "name one by its id: kb_1, kb_2"),
    ],
)
def test_what_cannot_begin_says_why(
    command: Command, backend: FakeBallast, folder: Path,
    arguments: tuple[str, ...], changes: dict[str, str], exit_code: int, said: str,
) -> None:  # fmt: skip
    backend.bases = {"kb_1": "Twice", "kb_2": "Twice"}
    ran = command("add", str(folder), *arguments, **changes)
    assert (ran.exit_code, ran.out) == (exit_code, "")
    assert said in ran.err
    assert not backend.puts


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_without_files_is_refused(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    assert command("add", str(tmp_path / name), "--base", "Tea").exit_code == 2


def test_a_lost_right_ends_the_run_once(command: Command, backend: FakeBallast, folder: Path) -> None:
    backend.on("PUT .*", lambda _, __: refusal(403, "Only editors may do this.", "permission_error"))
    ran = command("add", str(folder), "--base", "Tea")
    assert ran.exit_code == 4
    assert ran.err.count("Only editors may do this.") == 1


def test_the_digest_is_that_of_the_bytes(folder: Path) -> None:
    (file,) = files_below(folder / "tea.md")
    assert file.sha256() == sha256(b"# Tea").hexdigest()


def test_a_kind_that_is_not_read_is_skipped_and_no_failure(
    command: Command, backend: FakeBallast, folder: Path
) -> None:
    written(folder, {"a.png": "\0", "more/b.PNG": "\0", "c.zip": "\0"})
    backend.on(
        r"PUT .*\.(png|PNG|zip)",
        lambda _, __: refusal(400, "Cannot read it.", "invalid_request_error", "unsupported_value"),
    )
    ran = command("add", str(folder), "--base", "Tea")
    assert ran.exit_code == 0
    assert "5 added, 0 changed, 0 unchanged, 0 failed, 3 skipped" in ran.out
    assert "3 files of kinds that are not read: .png, .zip" in ran.out


def test_what_is_excluded_is_neither_sent_nor_pruned(command: Command, backend: FakeBallast, folder: Path) -> None:
    command("add", str(folder), "--base", "Tea")
    written(folder, {"more/coffee.md": "New", "tea.md": "New"})
    (folder / "more/old tea.md").unlink()
    (folder / "zh/茶.md").unlink()
    ran = command("add", str(folder), "--base", "Tea", "--exclude", "more", "--exclude", "t*.md", "--prune", "--yes")
    assert backend.puts[5:] == []
    assert "0 added, 0 changed, 1 unchanged, 0 failed, 1 removed" in ran.out
    assert {name for _, name in backend.documents} == {"e.md", "more/coffee.md", "more/old tea.md", "tea.md"}


def test_documents_are_removed_only_where_somebody_agrees(command: Command, backend: FakeBallast, folder: Path) -> None:
    command("add", str(folder), "--base", "Tea")
    (folder / "e.md").unlink()
    refused = command("add", str(folder), "--base", "Tea", "--prune")
    assert (refused.exit_code, len(backend.documents)) == (2, 5)
    assert "  e.md" in refused.err
    ran = command("add", str(folder), "--base", "Tea", "--prune", "--yes", "--json")
    assert ran.lines_of_json[-2:][0]["state"] == "removed"
    assert ran.lines_of_json[-1]["removed"] == 1
    assert len(backend.documents) == 4


def test_when_a_file_was_changed_is_sent(command: Command, backend: FakeBallast, folder: Path) -> None:
    os.utime(folder / "e.md", (0, 1_790_000_000))
    sent: dict[str, str] = {}

    def put(request: httpx2.Request, match: re.Match[str]) -> httpx2.Response:
        sent[match[1]] = request.headers["last-modified"]
        return answer({}, 201)

    backend.on("PUT .*/documents/(.+)", put)
    command("add", str(folder), "--base", "Tea")
    assert sent["e.md"] == "Mon, 21 Sep 2026 14:13:20 GMT"


async def test_a_watched_folder_is_followed(backend: FakeBallast, folder: Path) -> None:
    options: AddOptions = {"excluded": (), "prune": True, "watch": True, "yes": True}
    run = Run(connection_of({"BALLAST_KEY": KEY}, backend.transport), is_json=True)
    changed = asyncio.Event()

    def remove(_: httpx2.Request, __: re.Match[str]) -> httpx2.Response:
        changed.set()
        return answer({})

    def put_new(_: httpx2.Request, __: re.Match[str]) -> httpx2.Response:
        (folder / "e.md").unlink()
        return answer({}, 201)

    def put_first(request: httpx2.Request, _: re.Match[str]) -> httpx2.Response:
        written(folder, {"new.md": "New"})
        backend.documents["kb_1", "e.md"] = request.content
        return answer({}, 201)

    backend.on("DELETE .*/documents/e.md", remove)
    backend.on("PUT .*/documents/new.md", put_new)
    backend.on("PUT .*/documents/e.md", put_first)
    following = asyncio.create_task(watch(run, folder, "Tea", options, 0.0))
    await changed.wait()
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


def test_it_is_said_into_which_base_files_go_that_was_not_named(
    command: Command, backend: FakeBallast, folder: Path
) -> None:
    assert 'They go into "Tea", which BALLAST_BASE names' in command("add", str(folder), BALLAST_BASE="Tea").err
    assert "BALLAST_BASE" not in command("add", str(folder), "--base", "Tea", BALLAST_BASE="Coffee").err


def test_an_address_is_not_taken_for_a_file(command: Command) -> None:
    ran = command("add", "https://example.com", "--base", "Tea")
    assert (ran.exit_code, "An address is not read, only files and folders." in ran.err) == (2, True)
