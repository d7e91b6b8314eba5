"""Chat: answers with their sources, stop, ask again, edit, a reload in mid-stream, and what a keyboard reaches."""

import re
import shlex

import httpx2
import pytest
from playwright.async_api import Route, expect

from tests.console.browsing import Tab, Tabs, answers, ask, turns, wait_ended
from tests.console.running import DEMO_MODEL, Running
from tests.e2e.pair import MODEL
from tests.fakes.model_server import FakeModelControl, Reply

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How soon must a page be acknowledged, and what happens when nobody answers?"
JSON = {"content-type": "application/json"}
WORDS = tuple(f"w{number} " for number in range(60))
FOCUSED_ON_OPENING = """(opener, opened) => new Promise(resolve => {
    new MutationObserver((_, observer) => {
        const found = document.querySelector(opened);
        if (!found) return;
        observer.disconnect();
        resolve(found.contains(document.activeElement));
    }).observe(document.body, {childList: true, subtree: true});
    opener.click();
})"""


def bare_client(running: Running) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {running.demo.user_key}"}
    return httpx2.AsyncClient(base_url=running.pair.backend_url, headers=headers, timeout=60, trust_env=False)


async def chosen_at_first(tab: Tab, user: str, bases: int) -> str:
    """Open the page for a new user with so many bases, and return what it says is searched."""
    with tab.running.pair.http(tab.running.admin_key) as admin:
        key = admin.post("/v1/api_keys", json={"user_id": user, "role": "user", "tenant": "default"}).json()["key"]
    with tab.running.pair.http(key) as owner:
        for number in range(bases):
            assert owner.post("/v1/knowledge_bases", json={"name": f"Base {number}"}).status_code == 201
    async with tab.page.expect_response(re.compile("/v1/knowledge_bases")):
        await tab.open(keys={"user": key})
    await expect(tab.page.get_by_label("Model").locator("option").first).to_be_attached()
    return await tab.page.locator(".composer .menu summary").inner_text()


async def test_a_first_question_has_sources(tab: Tab):
    await tab.open()
    await ask(tab, QUESTION)
    await wait_ended(tab)
    await expect(tab.page.get_by_role("button", name=re.compile("^Source")).first).to_be_visible()
    await tab.page.locator(".composer .menu summary").click()
    for box in await tab.page.get_by_role("checkbox").all():
        await box.uncheck()
    await tab.page.get_by_role("link", name="New chat").click()
    await tab.page.reload()
    await expect(tab.page.locator("summary", has_text="No knowledge")).to_be_visible()


async def test_a_suggestion_chooses_its_base_for_its_chat_alone(tab: Tab):
    await tab.open()
    chosen = tab.page.locator(".composer .menu summary")
    await expect(chosen).to_have_text(re.compile("bases$"))
    at_first = await chosen.inner_text()
    await tab.page.get_by_role("button", name=QUESTION, exact=True).click()
    await wait_ended(tab)
    await expect(chosen).to_have_text("Operations handbook")
    await tab.page.reload()
    await wait_ended(tab)
    await expect(chosen).to_have_text("Operations handbook")
    await tab.page.get_by_role("link", name="New chat").click()
    await expect(chosen).to_have_text(at_first)


@pytest.mark.parametrize(("bases", "said"), [(0, "No knowledge"), (1, "Base 0"), (5, "5 bases"), (6, "Base 5")])
async def test_all_bases_are_searched_at_first_where_they_are_few(tab: Tab, bases: int, said: str):
    assert await chosen_at_first(tab, f"beginner-{bases}", bases) == said


async def test_that_only_the_newest_of_many_bases_is_searched_is_said(tab: Tab):
    await chosen_at_first(tab, "owner-of-seven", 7)
    told = tab.page.locator(".composer").get_by_text("Only the newest of your 7 bases is searched: Base 6.")
    await expect(told).to_be_visible()
    await tab.page.locator(".composer .menu summary").click()
    await tab.page.get_by_label("Base 2").check()
    await expect(told).to_have_count(0)


async def test_the_demos_model_says_once_what_it_is(tab: Tab):
    await tab.open()
    told = tab.page.get_by_role("note").filter(has_text="demo-model is a stand-in")
    await expect(told).to_be_visible()
    for _ in range(2):
        await ask(tab, QUESTION)
        await wait_ended(tab)
    await expect(told).to_have_count(1)
    await expect(answers(tab).first).not_to_contain_text("demo-model")
    await tab.page.get_by_label("Model").select_option(MODEL)
    await expect(told).to_have_count(0)


async def test_the_numbers_of_each_answer_count_from_one(tab: Tab):
    await tab.open()
    for turn in range(2):
        await ask(tab, QUESTION)
        await wait_ended(tab, turn=turn)
        numbers = [int(each) for each in await answers(tab).nth(turn).locator("button.cite").all_inner_texts()]
        assert list(dict.fromkeys(numbers)) == list(range(1, len(set(numbers)) + 1))
        listed = (
            await answers(tab).nth(turn).get_by_role("list", name="Sources").get_by_role("button").all_inner_texts()
        )
        assert [int(each[1 : each.index("]")]) for each in listed] == list(dict.fromkeys(numbers))


async def test_a_restricted_base_does_not_restrict_the_first_question(tab: Tab):
    await tab.open(keys={"user": tab.running.demo.restricted_key})
    await tab.page.locator("summary", has_text="bases").click()
    boxes = tab.page.get_by_role("checkbox")
    await expect(boxes.and_(tab.page.get_by_label("Operations handbook"))).to_be_checked()
    await expect(boxes.and_(tab.page.get_by_label("Partner contracts"))).not_to_be_checked()


async def test_an_answer_opens_the_passage_that_it_rests_on(tab: Tab):
    await tab.open()
    await tab.picture("chat-begin")
    await tab.page.get_by_role("button", name=QUESTION, exact=True).click()
    await wait_ended(tab)
    await expect(answers(tab)).to_contain_text("A page is acknowledged within five minutes.")
    chip = tab.page.get_by_role("button", name=re.compile(r"^Source \d+: on-call\.md$")).nth(1)
    await chip.click()
    passage = tab.page.get_by_role("complementary", name="Passage")
    await expect(passage.locator("mark").first).to_have_text("A page is acknowledged within five minutes")
    assert await tab.axe() == []
    await tab.picture("chat")
    await tab.page.keyboard.press("Escape")
    await expect(passage).to_have_count(0)
    await expect(chip).to_be_focused()
    chips = await tab.page.locator("button.cite").all_inner_texts()
    listed = tab.page.get_by_role("list", name="Sources").get_by_role("button")
    assert await listed.all_inner_texts() == [f"[{number}] on-call.md" for number in dict.fromkeys(chips)]
    await listed.first.click()
    await expect(passage.get_by_role("heading", name="on-call.md")).to_contain_text(chips[0])
    await tab.page.keyboard.press("Escape")
    await expect(listed.first).to_be_focused()
    await expect(tab.page.get_by_role("navigation", name="Conversations").get_by_role("link").first).to_have_text(
        QUESTION
    )


async def test_what_opens_has_the_focus_before_the_next_key(tab: Tab):
    await tab.open()
    await tab.page.get_by_role("button", name=QUESTION, exact=True).click()
    await wait_ended(tab)
    for opener, opened in (("button.cite", "aside.passages"), ("button[aria-label=Code]", "dialog")):
        assert await tab.page.locator(opener).first.evaluate(FOCUSED_ON_OPENING, opened), opened
        await tab.page.keyboard.press("Escape")
        await expect(tab.page.locator(opened)).to_have_count(0)


async def test_another_key_shows_nothing_of_the_one_before(tab: Tab):
    await tab.open()
    await ask(tab, "What is only mine?")
    await wait_ended(tab)
    history = tab.page.get_by_role("navigation", name="Conversations")
    await expect(history).to_contain_text("What is only mine?")
    await tab.page.get_by_role("button", name="Keys").click()
    await tab.page.get_by_label("Your key").fill(tab.running.demo.restricted_key)
    await tab.page.get_by_role("button", name="Use these keys").click()
    await expect(tab.page.get_by_role("alert")).to_be_visible()
    await expect(history).not_to_contain_text("What is only mine?")
    await expect(turns(tab)).to_have_count(0)


async def test_the_code_of_a_turn_asks_the_same(tab: Tab):
    await tab.open()
    await ask(tab, "Hello, it's me")
    await wait_ended(tab)
    await tab.page.get_by_role("button", name="Code", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Copy").click()
    command: str = await tab.page.evaluate("navigator.clipboard.readText()")
    arguments = shlex.split(command.replace("\\\n", " "))
    assert arguments[:3] == ["curl", "-N", f"{tab.running.pair.backend_url}/v1/responses"]
    with tab.running.pair.http(tab.running.demo.user_key) as client:
        answer = client.post("/v1/responses", content=arguments[-1], headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert "response.completed" in answer.text
    await tab.page.keyboard.press("Tab")
    await dialog.get_by_role("tab", name="curl").press("ArrowRight")
    await expect(dialog.get_by_role("tabpanel")).to_contain_text("client.responses.create(")
    program = await dialog.locator("pre").inner_text()
    assert "it's me" in program
    compile(program, "shown", "exec")
    assert await tab.axe() == []


async def test_stop_keeps_what_was_said(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL) as tab:
        await fake.script(Reply(text=WORDS, hold_after=20))
        await tab.open()
        await ask(tab, "stop me")
        await expect(answers(tab)).to_contain_text("w19")
        await tab.page.get_by_role("button", name="Stop", exact=True).click()
        await wait_ended(tab, "cancelled")
        await expect(answers(tab)).to_contain_text("w19")
        await expect(answers(tab)).to_contain_text("Stopped. What was said is kept.")
        assert await tab.axe() == []


async def test_a_reload_in_mid_stream_loses_and_doubles_no_word(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL) as tab:
        await fake.script(Reply(text=WORDS, hold_after=30))
        await tab.open()
        await ask(tab, "reload me")
        await expect(answers(tab)).to_contain_text("w29")
        followed = tab.page.expect_request(re.compile(r"/v1/responses/resp_\w+\?stream=true&.*starting_after=\d+"))
        async with followed:
            await tab.page.reload()
        await expect(answers(tab)).to_contain_text("w29")
        await fake.release()
        await wait_ended(tab)
        assert (await answers(tab).inner_text()).split() == "".join(WORDS).split()


async def test_another_tab_sees_a_running_answer_from_its_beginning(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL) as tab, tabs(model=MODEL) as other:
        await fake.script(Reply(text=WORDS, hold_after=30))
        await tab.open()
        await ask(tab, "look from elsewhere")
        await expect(answers(tab)).to_contain_text("w29")
        await other.open(tab.page.url.partition("#/")[2])
        await expect(answers(other)).to_contain_text("w29")
        await fake.release()
        await wait_ended(other)
        assert (await answers(other).inner_text()).split() == "".join(WORDS).split()
        await wait_ended(tab)


async def test_a_cut_connection_is_taken_up_again(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL) as tab:
        await fake.script(Reply(text=WORDS, hold_after=30))
        await tab.open()

        async def cut(route: Route) -> None:
            """Begin the turn, and let the browser's connection end in the middle of an event."""
            async with bare_client(tab.running) as client:
                body = route.request.post_data or ""
                async with client.stream("POST", "/v1/responses", content=body, headers=JSON) as answer:
                    received = b""
                    async for part in answer.aiter_bytes():
                        received += part
                        if b"w29" in received:
                            break
            await route.fulfill(body=received[:-20], headers=dict(answer.headers))

        await tab.page.route("**/v1/responses", cut, times=1)
        async with tab.page.expect_request(re.compile(r"starting_after=\d+")):
            await ask(tab, "cut me")
        await fake.release()
        await wait_ended(tab)
        assert (await answers(tab).inner_text()).split() == "".join(WORDS).split()


async def test_an_edit_and_a_repetition_branch_off_and_leave_the_first_conversation(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL) as tab:
        for text in ("one", "two", "three", "four"):
            await fake.script(Reply(text=(text,)))
        await tab.open()
        await ask(tab, "first")
        await wait_ended(tab)
        await ask(tab, "second")
        await wait_ended(tab, turn=1)
        first = tab.page.url
        await turns(tab).nth(1).get_by_role("button", name="Edit").click()
        await tab.page.get_by_role("textbox", name="Question").first.fill("second, better")
        await tab.page.get_by_role("button", name="Ask this instead").click()
        await expect(answers(tab).nth(1)).to_have_text("three")
        await wait_ended(tab, turn=1)
        edited = tab.page.url
        await turns(tab).nth(0).get_by_role("button", name="Ask again").click()
        await expect(answers(tab)).to_have_text(["four"])
        await wait_ended(tab)
        assert len({first, edited, tab.page.url}) == 3
        sent = [str(request.body) for request in await fake.requests()]
        assert "second, better" in sent[2]
        assert "first" in sent[2]
        await tab.page.goto(first)
        await expect(answers(tab)).to_have_text(["one", "two"])
        await tab.page.goto(edited)
        await expect(answers(tab)).to_have_text(["one", "three"])


async def test_a_conversation_is_deleted_after_a_question(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL) as tab:
        await tab.open()
        await ask(tab, "delete me soon")
        await wait_ended(tab)
        shown = tab.page.get_by_role("navigation", name="Conversations").get_by_role("link", name="delete me soon")
        await expect(shown).to_be_visible()
        await shown.hover()
        await tab.page.get_by_role("button", name="Delete “delete me soon”").click()
        await tab.page.get_by_role("button", name="Delete", exact=True).click()
        await expect(shown).to_have_count(0)
        await expect(turns(tab)).to_have_count(0)


async def test_an_error_is_said_and_nothing_is_lost(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL) as tab:
        await fake.script(Reply(status=400, body='{"error": {"message": "no"}}'))
        await tab.open()
        await ask(tab, "fail")
        await wait_ended(tab, "failed")
        await expect(tab.page.get_by_role("alert")).not_to_be_empty()
        await ask(tab, "and now")
        await wait_ended(tab, turn=1)
        await expect(answers(tab).nth(1)).to_have_text("ok")


async def test_the_keyboard_alone_suffices(tab: Tab):
    await tab.open()
    await expect(tab.page.get_by_role("button", name=QUESTION, exact=True)).to_be_visible()
    await tab.page.keyboard.press("Tab")
    await expect(tab.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await tab.page.keyboard.press("Enter")
    await tab.press_until_focused("Tab", tab.page.get_by_role("button", name=QUESTION, exact=True))
    await tab.page.keyboard.press("Enter")
    await wait_ended(tab)
    chip = tab.page.get_by_role("button", name=re.compile("^Source")).first
    await tab.press_until_focused("Tab", chip)
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.get_by_role("complementary", name="Passage")).to_be_focused()
    await tab.page.keyboard.press("Escape")
    await expect(chip).to_be_focused()
    await tab.press_until_focused("Tab", tab.page.get_by_label("Question", exact=True))
    await tab.press_until_focused("Tab", tab.page.locator("summary", has_text="Operations handbook"))
    await tab.page.keyboard.press("Enter")
    await tab.press_until_focused("Tab", tab.page.get_by_role("checkbox", name="Operations handbook"))
    await tab.page.keyboard.press("Space")
    await tab.page.keyboard.press("Escape")
    await expect(tab.page.locator("summary", has_text="No knowledge")).to_be_focused()


async def test_narrow_dark_and_chinese(tabs: Tabs):
    async with tabs(narrow=True, dark=True, language="zh") as tab:
        await tab.open()
        await tab.page.get_by_role("button", name="告警之后多久必须响应？").click()
        await wait_ended(tab)
        await tab.page.get_by_role("button", name=re.compile("^来源")).first.click()
        await expect(tab.page.get_by_role("complementary", name="段落").locator("mark").first).to_contain_text(
            "五分钟之内必须确认"
        )
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 360
        assert await tab.axe() == []
        await tab.picture("chat-zh-narrow-dark")


async def test_an_agent_answers_from_its_own_bases(tab: Tab):
    agent = f"/v1/agents/handbook-{id(tab)}"
    with tab.running.pair.http(tab.running.demo.user_key) as client:
        body = {"model": DEMO_MODEL, "knowledge_base_ids": [tab.running.demo.handbook_id]}
        assert client.put(agent, json=body).status_code == 201
    await tab.open()
    await tab.page.get_by_label("Model").select_option(agent.rpartition("/")[2])
    await expect(tab.page.locator("summary", has_text="No knowledge")).to_be_visible()
    await ask(tab, QUESTION)
    await wait_ended(tab)
    await expect(tab.page.get_by_role("button", name=re.compile("^Source")).first).to_be_visible()


async def test_a_long_conversation_shows_its_newest_turns(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL) as tab:
        with tab.running.pair.http(tab.running.demo.user_key) as client:
            items = [{"role": "user", "content": f"given {number}"} for number in range(1100)]
            conversation = client.post("/v1/conversations", json={"items": items}).json()["id"]
        await tab.open(f"chat/{conversation}")
        await expect(turns(tab).last).to_contain_text("given 1099")
        await fake.script(Reply(text=("an answer",)))
        await ask(tab, "and one more")
        await wait_ended(tab)
        await expect(answers(tab).last).to_have_text("an answer")


async def test_calls_of_a_clients_tools_are_steps(tab: Tab):
    items: list[dict[str, str]] = [{"role": "user", "content": "Mend it"}]
    for kind, given in (("function_call", "arguments"), ("custom_tool_call", "input")):
        items.append({"type": kind, "call_id": kind, "name": f"my_{kind}", given: "{}"})
        items.append({"type": f"{kind}_output", "call_id": kind, "output": "done"})
    with tab.running.pair.http(tab.running.demo.user_key) as client:
        conversation = client.post("/v1/conversations", json={"items": items}).json()["id"]
    await tab.open(f"chat/{conversation}")
    await expect(tab.page.locator(".step")).to_have_text(["Called my_function_call", "Called my_custom_tool_call"])
