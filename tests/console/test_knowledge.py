"""Knowledge: uploads that go on, what is wrong with files, search in two roles, members, descriptions."""

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Locator, Route, expect

from deploy.demo.loading import ANALYST_ID
from deploy.demo.public_api import quote
from tests.console.browsing import Tab, Tabs
from tests.console.hostile import HOSTILE, nothing_happened
from tests.console.running import Running

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = 200
BAD = ("broken.pdf", "huge.txt", "picture.png")


@pytest.fixture
def owner(running: Running) -> Iterator[httpx2.Client]:
    """The demo's user as a program; bases that a test leaves behind are deleted."""
    with running.pair.http(running.demo.user_key) as client:
        before = ids_of_bases(client)
        yield client
        for base_id in ids_of_bases(client) - before:
            client.delete(f"/v1/knowledge_bases/{base_id}")


def ids_of_bases(client: httpx2.Client) -> set[str]:
    return {base["id"] for base in client.get("/v1/knowledge_bases", params={"limit": 100}).json()["data"]}


def new_base(client: httpx2.Client, **described: Any) -> str:
    return client.post("/v1/knowledge_bases", json={"name": "Travel", **described}).json()["id"]


def names_of_documents(client: httpx2.Client, base_id: str) -> set[str]:
    asked, names = {"limit": 100}, set[str]()
    while True:
        page = client.get(f"/v1/knowledge_bases/{base_id}/documents", params=asked).json()
        names |= {document["name"] for document in page["data"]}
        if not page["has_more"]:
            return names
        asked["after"] = page["last_id"]


def put(client: httpx2.Client, base_id: str, name: str, text: str) -> None:
    path = f"/v1/knowledge_bases/{base_id}/documents/{quote(name)}"
    assert client.put(path, content=text.encode()).status_code == 201


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a person has one: many notes in folders, three files that cannot be read, and a hidden one."""
    directory = tmp_path_factory.mktemp("given") / "Notes of the team"
    for number in range(GOOD):
        part = directory / f"part {number // 50}"
        part.mkdir(parents=True, exist_ok=True)
        text = f"# Note {number}\n\nThe lamp of hall {number} is lit at dusk.\n"
        (part / f"note-{number}.md").write_text(text, encoding="utf-8")
    (directory / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing of a document")
    (directory / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    with (directory / "huge.txt").open("wb") as huge:
        huge.truncate(34 * 1024 * 1024)
    (directory / ".DS_Store").write_bytes(b"hidden")
    return directory


def lines(tab: Tab, stage: str) -> Locator:
    return tab.page.locator(f".upload-lines [data-stage={stage}]")


async def test_a_folder_is_uploaded_through_a_reload_and_bad_files_are_named(
    tab: Tab, owner: httpx2.Client, folder: Path
):
    await tab.open("knowledge")
    await tab.page.get_by_role("button", name="New base").click()
    await tab.page.get_by_label("Name").fill("Notes")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.get_by_role("heading", name="Notes", exact=True)).to_be_visible()
    await expect(tab.page.get_by_role("heading", name="No document yet")).to_be_visible()
    await tab.page.locator("input[webkitdirectory]").set_input_files(folder)
    await expect(tab.page.get_by_text("Left out because they are hidden: 1.")).to_be_visible()
    await expect(lines(tab, "failed")).to_have_count(len(BAD))
    await expect(lines(tab, "stored").nth(20)).to_be_visible()
    await tab.picture("knowledge-upload")
    await tab.page.reload()
    await expect(tab.page.get_by_role("status").filter(has_text="not stored")).to_be_visible()
    await expect(lines(tab, "waiting")).to_have_count(0, timeout=240_000)
    await expect(lines(tab, "sending").or_(lines(tab, "reading"))).to_have_count(0)
    assert await tab.axe() == []
    for name, told, mend in (
        ("broken.pdf", "PDF", "Open it and save it again"),
        ("huge.txt", "larger than 33554432 bytes", "Split it into smaller files"),
        ("picture.png", "are not read", "Convert it to one of the formats"),
    ):
        line = lines(tab, "failed").filter(has_text=name)
        await expect(line).to_contain_text(told)
        await expect(line).to_contain_text(mend)
    (base_id,) = ids_of_bases(owner) - {
        tab.running.demo.handbook_id,
        tab.running.demo.contracts_id,
        tab.running.demo.handbook_zh_id,
    }
    assert names_of_documents(owner, base_id) == {f"{folder.name}/part {n // 50}/note-{n}.md" for n in range(GOOD)}


async def drop(tab: Tab, path: Path) -> None:
    """Drop a file or a folder of this machine, as a person drags it out of another window."""
    box = await tab.page.locator(".drop-zone").bounding_box()
    assert box
    place = {"x": box["x"] + 20, "y": box["y"] + 20}
    given = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    browser = await tab.page.context.new_cdp_session(tab.page)
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, **place, "data": given}
        await browser.send("Input.dispatchDragEvent", event)  # pyright: ignore[reportUnknownMemberType]


async def test_a_dropped_folder_is_tried_again_while_the_server_is_busy(tab: Tab, owner: httpx2.Client, tmp_path: Path):
    (tmp_path / "lamps" / "north").mkdir(parents=True)
    (tmp_path / "lamps" / "north" / "dropped.txt").write_text("The lamp is lit at dusk.", encoding="utf-8")

    async def busy(route: Route) -> None:
        headers = {"retry-after": "1"}
        await route.fulfill(status=503, headers=headers, json={"error": {"message": "Too many documents wait."}})

    base_id = new_base(owner)
    await tab.open(f"knowledge/{base_id}")
    await tab.page.route(re.compile(r"dropped\.txt$"), busy, times=1)
    await drop(tab, tmp_path / "lamps")
    await expect(lines(tab, "sending")).to_contain_text("The server is busy or away. This file is tried again.")
    await expect(lines(tab, "stored")).to_contain_text("read, 1 passages · embedded 1 of 1")
    await expect(tab.page.get_by_text("1 of 1 passages are found by meaning, too")).to_be_visible()
    assert names_of_documents(owner, base_id) == {"lamps/north/dropped.txt"}
    await tab.page.get_by_role("button", name="Clear the list").click()
    await expect(tab.page.get_by_role("region", name="Uploads")).to_have_count(0)


async def test_documents_are_counted_while_others_are_still_stored(tab: Tab, owner: httpx2.Client, tmp_path: Path):
    base_id = new_base(owner, embed=False)
    is_let_through = asyncio.Event()

    async def held(route: Route) -> None:
        await is_let_through.wait()
        await route.continue_()

    for name in ("first.txt", "second.txt"):
        (tmp_path / name).write_text(f"The lamp of the {name} is lit at dusk.", encoding="utf-8")
    tab.can_be_lent_again = False
    await tab.page.clock.install()
    await tab.open(f"knowledge/{base_id}")
    await expect(tab.page.locator(".facts")).to_contain_text("0 documents")
    await tab.page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
    await tab.page.route(re.compile(r"second\.txt$"), held)
    files = [tmp_path / name for name in ("first.txt", "second.txt")]
    await tab.page.locator("input[type=file]:not([webkitdirectory])").set_input_files(files)
    for stored in (1, 2):
        await expect(lines(tab, "stored")).to_have_count(stored)
        await tab.page.clock.run_for(700)
        is_let_through.set()
    await expect(tab.page.locator(".facts")).to_contain_text("2 documents")


KEPT = """() => new Promise((resolve, reject) => {
    const opening = indexedDB.open("ballast.uploads");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
        const counting = opening.result.transaction("files").objectStore("files").count();
        counting.onsuccess = () => { opening.result.close(); resolve(counting.result); };
    };
})"""

NONE_KEPT = f"async () => {{ while (await ({KEPT})()) continue; }}"
"""Waits until no file is kept: the browser deletes them while the page goes on."""


async def with_a_file_that_waits(tab: Tab, base_id: str, place: Path) -> set[str]:
    """Choose a file that the server never gets; return the headers with which it is sent, as they come."""
    sent_with: set[str] = set()

    async def away(route: Route) -> None:
        sent_with.add(route.request.headers["authorization"])
        await route.abort()

    (place / "secret.txt").write_text("The lamp is lit at dusk.", encoding="utf-8")
    await tab.open(f"knowledge/{base_id}")
    await tab.page.route(re.compile(r"secret\.txt$"), away)
    await tab.page.locator("input[type=file]:not([webkitdirectory])").set_input_files(place / "secret.txt")
    await expect(lines(tab, "sending")).to_contain_text("This file is tried again.")
    assert await tab.page.evaluate(KEPT) == 1
    return sent_with


async def test_files_that_wait_are_forgotten_with_the_keys(tab: Tab, owner: httpx2.Client, tmp_path: Path):
    await with_a_file_that_waits(tab, new_base(owner), tmp_path)
    await tab.page.get_by_role("button", name="Keys").click()
    await tab.page.get_by_role("button", name="Forget all keys").click()
    await expect(tab.page.get_by_role("button", name="Use these keys")).to_be_visible()
    await tab.page.evaluate(NONE_KEPT)


async def test_files_of_one_key_are_not_sent_with_another(tab: Tab, owner: httpx2.Client, tmp_path: Path):
    sent_with = await with_a_file_that_waits(tab, new_base(owner), tmp_path)
    await tab.page.goto("about:blank")
    await tab.open(keys={"user": tab.running.demo.restricted_key})
    await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible()
    await tab.page.evaluate(NONE_KEPT)
    assert sent_with == {f"Bearer {tab.running.demo.user_key}"}


async def test_a_card_says_how_many_documents_a_base_has_and_how_far_it_is_embedded(tab: Tab, owner: httpx2.Client):
    base_id = new_base(owner, name="Trips", embed=False)
    for number in range(2):
        put(owner, base_id, f"{number}.md", f"# Trip {number}\n\nThe boat leaves at noon.\n")

    async def half_embedded(route: Route) -> None:
        answer = await (await route.fetch()).json()
        found = [
            {**base, "embedded_chunks": 1, "chunks": 2, "embedding_seconds_left": 130}
            if base["id"] == base_id
            else base
            for base in answer["data"]
        ]
        await route.fulfill(json={**answer, "data": found})

    await tab.page.route("**/v1/knowledge_bases?*", half_embedded)
    await tab.open("knowledge")
    card = tab.page.get_by_role("link", name="Trips")
    await expect(card).to_contain_text("2 documents")
    await expect(card).to_contain_text("1 of 2 passages embedded")
    await expect(card).to_contain_text("about 3 minutes left")
    await tab.page.unroute("**/v1/knowledge_bases?*", half_embedded)
    await expect(card).not_to_contain_text("embedded")
    await card.click()
    await expect(tab.page.locator(".facts")).to_contain_text("2 documents")


async def test_passages_and_deletion_of_documents(tab: Tab, owner: httpx2.Client):
    base_id = new_base(owner)
    for name in ("lamps.md", "oil.md"):
        put(owner, base_id, name, "# Lamps\n\n" + "The lamp of the hall is lit at dusk. " * 60)
    await tab.open(f"knowledge/{base_id}")
    table = tab.page.get_by_role("table", name="Documents")
    await expect(table.get_by_role("row")).to_have_count(3)
    await table.get_by_role("button", name="lamps.md").first.click()
    dialog = tab.page.get_by_role("dialog", name="lamps.md")
    passages = owner.get(f"/v1/knowledge_bases/{base_id}/chunks", params={"document": "lamps.md"}).json()["data"]
    await expect(dialog.locator(".passage-list > li")).to_have_count(len(passages))
    await expect(dialog.get_by_text("Lamps", exact=True).first).to_be_visible()
    await tab.page.keyboard.press("Escape")
    await table.get_by_role("button", name="Delete oil.md").click()
    await tab.page.get_by_role("button", name="Delete it").click()
    await expect(table.get_by_role("row")).to_have_count(2)
    assert names_of_documents(owner, base_id) == {"lamps.md"}


async def test_a_search_as_oneself_and_as_a_restricted_analyst(tab: Tab):
    await tab.open(f"knowledge/{tab.running.demo.contracts_id}/search")
    await tab.page.get_by_label("Search for").fill("What does Harrow & Finch pay per parcel?")
    await tab.page.keyboard.press("Enter")
    hits = tab.page.locator(".hits > li")
    await expect(hits.first).to_contain_text("0.62 euros")
    await expect(hits.first.locator("mark").first).to_be_visible()
    assert await tab.axe() == []
    await tab.picture("knowledge-search")
    await tab.page.get_by_label("As", exact=True).select_option("A restricted analyst")
    await expect(tab.page.get_by_role("region", name="What they get for this search")).to_contain_text(
        "The analyst's key of this tab was refused just now"
    )
    with tab.running.pair.http(tab.running.demo.restricted_key) as analyst:
        told = analyst.get(f"/v1/knowledge_bases/{tab.running.demo.contracts_id}").json()
    seen = tab.page.get_by_role("region", name="What a restricted analyst sees of this base")
    for text in (told["name"], told["routing_hint"], *told["routing_keywords"]):
        await expect(seen).to_contain_text(text)
    assert "0.62" not in await tab.page.locator("main").inner_text()
    assert await tab.axe() == []
    await tab.page.get_by_role("link", name="Ask this as two people").click()
    await expect(tab.page.get_by_label("Question", exact=True)).to_have_value(
        "What does Harrow & Finch pay per parcel?"
    )


async def test_members_are_added_changed_and_removed(tab: Tab, owner: httpx2.Client):
    base_id = new_base(owner)
    await tab.open(f"knowledge/{base_id}/members")
    await tab.page.get_by_label("User id").fill("ann")
    await tab.page.get_by_label("Role", exact=True).select_option("Restricted analyst")
    await tab.page.get_by_role("button", name="Add member").click()
    asked = tab.page.get_by_role("dialog", name="What may leave for restricted members?")
    await expect(asked).to_contain_text("Night shift: too much depends on one person (serious).")
    assert await tab.axe() == []
    await asked.get_by_role("button", name="Choose strict").click()
    await expect(tab.page.get_by_label("Role of ann")).to_have_value("restricted_analyst")
    assert owner.get(f"/v1/knowledge_bases/{base_id}").json()["restricted_grade"] == "strict"
    await tab.page.get_by_label("Role of ann").select_option("Editor")
    await expect(tab.page.get_by_role("row").filter(has_text="ann")).to_contain_text("may change documents")
    address = f"/v1/knowledge_bases/{base_id}/members/ann"
    assert owner.get(address).json()["role"] == "editor"
    assert await tab.axe() == []
    await tab.page.get_by_role("button", name="Remove ann").click()
    await expect(tab.page.get_by_label("Role of ann")).to_have_count(0)
    assert owner.get(address).status_code == 404
    await tab.page.get_by_label("Role of demo-user").select_option("Reader")
    await expect(tab.page.locator(".toast.error")).to_contain_text("owner")
    await expect(tab.page.get_by_label("Role of demo-user")).to_have_value("owner")


async def test_a_group_is_added_as_a_member_changed_and_removed(tab: Tab, owner: httpx2.Client):
    base_id = new_base(owner)
    with tab.running.pair.http(tab.running.admin_key) as admin:
        group_id = admin.post("/v1/groups", json={"name": f"Tea of {base_id}"}).json()["id"]
        assert admin.put(f"/v1/groups/{group_id}/members/demo-user").status_code == 201
    address = f"/v1/knowledge_bases/{base_id}/members/groups/{group_id}"
    await tab.open(f"knowledge/{base_id}/members")
    await tab.page.get_by_label("User id").fill(f"group:Tea of {base_id}")
    await tab.page.get_by_label("Role", exact=True).select_option("Owner")
    await tab.page.get_by_role("button", name="Add member").click()
    shown = tab.page.get_by_label(f"Role of group:Tea of {base_id}")
    await expect(shown).to_have_value("owner")
    assert owner.get(address).json()["role"] == "owner"
    assert await tab.axe() == []
    await shown.select_option("Reader")
    await expect(tab.page.locator(".toast.error")).to_contain_text("strictest")
    await expect(shown).to_have_value("owner")
    await tab.page.get_by_role("button", name=f"Remove group:Tea of {base_id}").click()
    await expect(shown).to_have_count(0)
    assert owner.get(address).status_code == 404


async def test_what_is_withheld_is_said_with_its_reason_and_mended(tab: Tab, owner: httpx2.Client):
    base_id = new_base(owner, name="Fleet", routing_hint="Ask about the fleet", routing_keywords=["trips", "42 vans"])
    put(owner, base_id, "fleet.md", "The Marlowe depot keeps 42 vans, and each of them is washed on Tuesdays.")
    await tab.open(f"knowledge/{base_id}/description")
    await expect(tab.page.locator(".withheld")).to_contain_text("42 vans: Withheld from restricted members")
    await expect(tab.page.locator(".withheld")).to_contain_text("figures, dates and amounts")
    seen = tab.page.get_by_role("region", name="What a restricted analyst sees of this base")
    await expect(seen).not_to_contain_text("42")
    await tab.picture("knowledge-description")
    translate = tab.page.get_by_role("switch", name=re.compile("Translate for restricted members The price"))
    await translate.check()
    await expect(tab.page.get_by_text("Saved.")).to_be_visible()
    assert owner.get(f"/v1/knowledge_bases/{base_id}").json()["restricted_translation"] is True
    await tab.page.get_by_label("Grade for restricted members").select_option("Strict")
    await expect(tab.page.get_by_text("at most 71 bits an answer")).to_be_visible()
    for label, choice in (("What the base holds", "Records"), ("Documents that must have a word", "5")):
        async with tab.page.expect_response(f"**/v1/knowledge_bases/{base_id}"):
            await tab.page.get_by_label(label).select_option(choice)
    await expect(tab.page.get_by_label("Documents that must have a word")).to_have_value("5")
    told = owner.get(f"/v1/knowledge_bases/{base_id}").json()
    assert (told["restricted_grade"], told["content"], told["support"]) == ("strict", "records", 5)
    assert await tab.axe() == []
    await tab.page.get_by_label("Keywords").fill("\n".join(f"word {place}" for place in range(25)))
    await tab.page.get_by_role("button", name="Save").click()
    await expect(tab.page.get_by_role("alert")).to_contain_text("24")
    await tab.page.get_by_label("Keywords").fill("trips\nvehicles")
    await tab.page.get_by_role("button", name="Save").click()
    await expect(tab.page.locator(".withheld")).to_have_count(0)
    await expect(seen).to_contain_text("vehicles")
    with_role = owner.put(f"/v1/knowledge_bases/{base_id}/members/{ANALYST_ID}", json={"role": "restricted_analyst"})
    assert with_role.status_code == 201
    with tab.running.pair.http(tab.running.demo.restricted_key) as analyst:
        told = analyst.get(f"/v1/knowledge_bases/{base_id}").json()
    assert await seen.get_by_role("listitem").all_inner_texts() == told["routing_keywords"]


async def test_a_restricted_analyst_sees_no_document(tab: Tab):
    await tab.open(f"knowledge/{tab.running.demo.contracts_id}", {"user": tab.running.demo.restricted_key})
    await expect(tab.page.get_by_text("You are a restricted analyst of this base")).to_be_visible()
    await expect(tab.page.get_by_role("tab")).to_have_count(0)
    await tab.open("knowledge/kb_of_nobody")
    await expect(tab.page.get_by_role("alert")).to_contain_text("no such knowledge base")


async def test_hostile_names_narrow_dark_chinese_and_by_keyboard(tabs: Tabs, owner: httpx2.Client):
    name = '<img src=x onerror="document.title=1">\u202efdp.exe'
    base_id = new_base(
        owner, name=name + "x" * 100, summary=HOSTILE[:3000], routing_hint="<b>hint</b>", routing_keywords=["<i>k</i>"]
    )
    put(
        owner,
        base_id,
        f'"><script>document.title=1</script>{"长" * 400}.md',
        f"# {HOSTILE[:200]}\n\n{'lamp ' * 2000}{'x' * 10_000}{HOSTILE}",
    )
    async with tabs(narrow=True, dark=True, language="zh") as tab:
        await tab.open(f"knowledge/{tab.running.demo.handbook_zh_id}")
        await expect(tab.page.get_by_role("table", name="文档")).to_be_visible()
        await tab.picture("knowledge-zh-narrow-dark")
        await tab.page.get_by_role("link", name="所有知识库").click()
        card = tab.page.locator(f"a[href*='{base_id}']")
        await expect(card).to_be_visible()
        await nothing_happened(tab)
        assert await tab.axe() == []
        await tab.press_until_focused("Tab", card)
        await tab.page.keyboard.press("Enter")
        opened = tab.page.get_by_role("table", name="文档").get_by_role("button").first
        await expect(opened).to_be_visible()
        assert await tab.axe() == []
        await nothing_happened(tab)
        await tab.press_until_focused("Tab", opened)
        await tab.page.keyboard.press("Enter")
        await expect(tab.page.get_by_role("dialog").locator(".passage-list > li").first).to_be_visible()
        await nothing_happened(tab)
        await tab.page.keyboard.press("Escape")
        await tab.press_until_focused("Shift+Tab", tab.page.get_by_role("tab", name="文档"))
        for part in ("检索", "成员", "描述"):
            await tab.page.keyboard.press("ArrowRight")
            await expect(tab.page.get_by_role("tab", name=part)).to_be_focused()
            await expect(tab.page.get_by_role("tabpanel").locator("input").first).to_be_visible()
            await nothing_happened(tab)
        assert await tab.axe() == []
