"""A file of the largest size that is made to be costly, beside another that is put at the same time."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.e2e.hostile_files import HOSTILE
from tests.e2e.pair import lone_backend
from tests.e2e.turns import bare_client, new_base
from tests.servers.services import Launch

LARGEST_BYTES = 32 * 1024 * 1024
MOST_GROWTH_BYTES = 64 * 1024 * 1024


async def test_a_costly_file_takes_neither_the_memory_of_the_backend_nor_the_time_of_others(
    launch: Launch, tmp_path: Path
) -> None:
    pair = lone_backend(launch, tmp_path)
    async with bare_client(pair, "eve") as eve, bare_client(pair, "ann") as ann:
        theirs, ours = await new_base(eve, "Bombs"), await new_base(ann, "Cellar", list="The wine is red.")
        before = peak_bytes(pair.backend.pid)
        costly = b"# a\n" * (LARGEST_BYTES // 4)
        path = f"/v1/knowledge_bases/{theirs}/documents/bomb.md"
        putting = asyncio.create_task(eve.put(path, content=costly))
        documents = f"/v1/knowledge_bases/{ours}/documents"
        page = "<h1>Wine</h1><p>The wine is white."
        assert (await ann.put(f"{documents}/page.html", content=page)).status_code == 201
        refused = await putting
        assert 400 <= refused.status_code < 500
        assert refused.json()["error"]["param"] == "body"
        assert peak_bytes(pair.backend.pid) - before < MOST_GROWTH_BYTES
        found = await ann.post(f"/v1/knowledge_bases/{ours}/search", json={"query": "white wine"})
        assert [hit["document"] for hit in found.json()["data"]] == ["page.html", "list.md"]


@pytest.mark.whole
async def test_files_that_do_not_end_are_answered_and_others_are_read_beside_them(
    launch: Launch, tmp_path: Path
) -> None:
    """Each is taken or refused in a sentence; the process that reads them is another, and ends alone."""
    pair = lone_backend(launch, tmp_path)
    async with bare_client(pair, "eve") as eve, bare_client(pair, "ann") as ann:
        theirs, ours = await new_base(eve, "Bombs"), await new_base(ann, "Cellar")
        before = peak_bytes(pair.backend.pid)
        answers = dict[str, httpx2.Response]()

        async def put_hostile() -> None:
            for name, make in HOSTILE.items():
                body = await asyncio.to_thread(make)
                answers[name] = await eve.put(f"/v1/knowledge_bases/{theirs}/documents/{name}", content=body)

        hostile = asyncio.create_task(put_hostile())
        page = "<h1>Wine</h1><p>The wine of year {} is white."
        put = 0
        while not hostile.done():
            path = f"/v1/knowledge_bases/{ours}/documents/{put}.html"
            assert (await ann.put(path, content=page.format(put))).status_code == 201
            put += 1
            await asyncio.wait([hostile], timeout=0.2)
        await hostile
    wrong = {name: answer.text for name, answer in answers.items() if not _is_answered(answer)}
    assert not wrong
    assert put > len(HOSTILE)
    assert peak_bytes(pair.backend.pid) - before < 2 * LARGEST_BYTES + MOST_GROWTH_BYTES


def _is_answered(answer: httpx2.Response) -> bool:
    """Whether a file was taken, or refused as the caller's."""
    return answer.status_code == 201 or (
        400 <= answer.status_code < 500
        and bool(answer.json()["error"]["message"])
        and bool(answer.json()["error"]["param"])
    )


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has held so far."""
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
