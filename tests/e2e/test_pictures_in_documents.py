"""Pages without text and pictures through the API, with a model behind it that reads them, and one that fails."""

import asyncio
from io import BytesIO
from pathlib import Path
from typing import Any

import docx
import httpx2

from tests.e2e.pair import MODEL, lone_backend, start_model
from tests.e2e.rereading import reread
from tests.e2e.turns import bare_client, new_base
from tests.fakes.model_server import FakeModelControl, Reply
from tests.fakes.pictures import file_of, picture_of, scan_of
from tests.servers.services import Launch

SCAN = picture_of("as a scanner makes it", (620, 877))


async def put(client: httpx2.AsyncClient, base_id: str, name: str, body: bytes) -> Any:
    answer = await client.put(f"/v1/knowledge_bases/{base_id}/documents/{name}", content=body)
    assert answer.status_code in {200, 201, 400}, answer.text
    return answer.json()


async def found(client: httpx2.AsyncClient, base_id: str, query: str) -> list[tuple[str, Any]]:
    answer = await client.post(f"/v1/knowledge_bases/{base_id}/search", json={"query": query})
    return [(hit["document"], hit["place"]) for hit in answer.json()["data"]]


def with_picture() -> bytes:
    document, file = docx.Document(), BytesIO()
    document.add_paragraph("See the stamp.").add_run().add_picture(BytesIO(file_of(SCAN)))
    document.save(file)
    return file.getvalue()


async def test_what_a_model_reads_is_found_where_it_stands_and_what_it_does_not_is_noted(
    launch: Launch, tmp_path: Path
) -> None:
    model, url = start_model(launch, tmp_path / "model")
    engine = {"BACKEND_OCR": "model", "BACKEND_OCR_BASE_URL": url, "BACKEND_OCR_MODEL": MODEL}
    pair = lone_backend(launch, tmp_path / "backend", **engine)
    await asyncio.to_thread(model.wait_ready)
    async with FakeModelControl(url) as vision, bare_client(pair, "ocr-ann") as client:
        base = await new_base(client, "Scans")
        await vision.script(
            *(Reply(text=(text,)) for text in ("The hull is copper.", "Dated in autumn.", "A herring."))
        )
        scanned = await put(client, base, "deed.pdf", scan_of("Cover.", SCAN, SCAN.rotate(180)))
        stamped, photo = await put(client, base, "letter.docx", with_picture()), file_of(picture_of("?"))
        assert (scanned.get("notes"), stamped.get("notes")) == ([], [])
        assert await found(client, base, "copper hull") == [("deed.pdf", {"page": 1, "last_page": 3})]
        assert await found(client, base, "herring") == [("letter.docx", None)]
        await vision.script(Reply(status=401, body="{}"), Reply(text=("[no text]",)))
        left = await put(client, base, "later.pdf", scan_of("Cover of it.", SCAN))
        assert [note.partition(":")[0] for note in left["notes"]] == ["Page 2 of 2 was not read"]
        assert "no text in it" in (await put(client, base, "photo.png", photo))["error"]["message"]
        await vision.script(Reply(text=("The keel is oak.",)))
        assert (await asyncio.to_thread(reread, pair))[-1] == "1 read, 0 refused, 0 changed"
        assert ("later.pdf", {"page": 1, "last_page": 2}) in await found(client, base, "oak keel")
        assert len(await vision.requests()) == 6
