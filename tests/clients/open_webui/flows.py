"""Flows of Open WebUI, driven in Chromium: chats, continue, stop, regenerate, edit, knowledge, files, images."""

import base64
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from commands import ENDLESS, HOME, check_let_go, make_agent, model_requests, running, wait_asked
from flow_kit import CODE_WORD, FILE_CODE_WORD, FILE_TEXT, KNOWLEDGE_QUESTION, MODEL, PNG, check, flow, questions, run
from playwright.sync_api import Page, expect, sync_playwright

from tests.console.chromium import chromium_path
from tests.servers.ports import free_port

PORT = str(free_port())
ADDRESS = f"http://127.0.0.1:{PORT}"
SETTINGS = {
    "PORT": PORT,
    # nothing is fetched, and a chat is what its user says: titles and proposals are turns of their own
    "OFFLINE_MODE": "True", "HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False", "DO_NOT_TRACK": "true",
    "ENABLE_TITLE_GENERATION": "False", "ENABLE_TAGS_GENERATION": "False", "ENABLE_FOLLOW_UP_GENERATION": "False",
    # files go into the message as a whole: an embedder would be a client of its own
    "BYPASS_EMBEDDING_AND_RETRIEVAL": "True", "RAG_EMBEDDING_ENGINE": "openai",
}  # fmt: skip
_PATIENCE_MS = 30_000
_PAGES: list[Page] = []


def new_chat(model: str = MODEL) -> Page:
    """Open a new chat with a model, in the only tab."""
    page = _PAGES[0]
    page.goto(f"{ADDRESS}/?models={model}")
    page.locator("#chat-input").wait_for()
    greeting = page.get_by_role("button", name="Okay, Let's Go!")
    with suppress(Exception):
        greeting.click(timeout=1500)
    expect(page.locator("#model-selector-model-button")).to_contain_text(model)
    return page


def say(page: Page, text: str) -> None:
    """Write a message and send it."""
    page.locator("#chat-input").click()
    page.keyboard.insert_text(text)
    page.keyboard.press("Enter")


def answered(page: Page, words: str) -> str:
    """Wait until the newest answer has these words and is at its end, and return it."""
    newest = page.locator(".chat-assistant").last
    expect(newest).to_contain_text(words)
    page.locator("#continue-response-button").last.wait_for()
    return newest.inner_text()


@flow("plain", "the models in the list")
def models():
    """Models and agents may be chosen."""
    page = new_chat()
    page.locator("#model-selector-model-button").click()
    for name in (MODEL, "open-webui-handbook"):
        expect(page.get_by_role("option", name=f"Select {name} model")).to_be_visible()


@flow("streamed", "a chat")
def chat():
    """A question and its answer, which the page shows as it comes."""
    page = new_chat()
    say(page, "Hello webui")
    check("Turn 1:" in answered(page, 'you said "Hello webui"'))


@flow("streamed", "reasoning")
def reasoning():
    """The thoughts are folded above the answer."""
    page = new_chat()
    say(page, "Think: of a name")
    text = answered(page, "Turn 1:")
    check("Thought" in text or "I was asked to think." in text, text)


@flow("history", "a chat")
def history():
    """Five turns."""
    page = new_chat()
    for number, question in enumerate(questions("a chat"), 1):
        say(page, question)
        answered(page, f"Turn {number}:")


@flow("streamed", "Continue Response")
def go_on():
    """The list that is sent ends with the assistant's message."""
    page = new_chat()
    say(page, "Hello again and again")
    before = answered(page, "Hello again and again")
    page.locator("#continue-response-button").click()
    expect(page.locator(".chat-assistant").last).not_to_have_text(before)
    after = answered(page, "Hello again and again")
    check(len(after) > len(before), before, after)


@flow("streamed", "Regenerate, Try Again")
def regenerate():
    """A second answer beside the first."""
    page = new_chat()
    say(page, "Hello once more")
    answered(page, "Hello once more")
    page.get_by_role("button", name="Regenerate").click()
    page.get_by_role("button", name="Try Again").click()
    expect(page.locator(".chat-assistant").last).to_be_visible()
    expect(page.get_by_text("2/2")).to_be_visible()
    check("Turn 1:" in answered(page, "Hello once more"))


@flow("streamed", "a message edited and sent again")
def edit():
    """The chat forks at the edited message."""
    page = new_chat()
    say(page, "My plum is ripe")
    answered(page, "plum")
    say(page, "Is it sweet?")
    answered(page, "Turn 2:")
    message = page.locator(".user-message").first
    message.hover()
    message.get_by_role("button", name="Edit").click()
    page.locator("textarea[id^=message-edit-]").fill("My pear is ripe")
    page.locator("#confirm-edit-message-button").click()
    check("Turn 1:" in answered(page, "My pear is ripe"))


@flow("streamed", "an answer edited and saved, then a question")
def edit_answer():
    """The model is sent what the user made of its answer."""
    page = new_chat()
    say(page, "Name a fruit")
    answered(page, "Name a fruit")
    page.locator("[id^=message-]", has=page.locator(".chat-assistant")).get_by_role("button", name="Edit").click()
    page.locator("[id^=message-] textarea").fill("I name the medlar.")
    page.locator("#confirm-edit-message-button").click()
    expect(page.locator(".chat-assistant").last).to_contain_text("medlar")
    say(page, "And another one after it")
    answered(page, "And another one after it")
    check("I name the medlar." in str(model_requests("And another one after it")))


@flow("stopping", "Stop")
def stop():
    """The provider's stream ends, and what was said stays."""
    page = new_chat()
    mark = f"{ENDLESS}, open webui"
    say(page, mark)
    expect(page.locator(".chat-assistant").last).to_contain_text("I begin")
    request = wait_asked(mark)
    page.get_by_role("button", name="Stop").click()
    check_let_go(request)
    expect(page.locator(".chat-assistant").last).to_contain_text("I begin")
    say(page, "Go on with pears")
    answered(page, "Go on with pears")


@flow("stopping", "the tab is closed, and the answer goes on")
def left():
    """Open WebUI itself reads on when its page is left; the chat holds the answer later."""
    page = new_chat()
    say(page, "Hello from somebody who leaves")
    answered(page, "somebody who leaves")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    answered(page, "somebody who leaves")


@flow("knowledge", "an agent as the model, with its sources")
def knowledge():
    """The handbook is searched on our side, and the page shows the source."""
    page = new_chat("open-webui-handbook")
    say(page, KNOWLEDGE_QUESTION)
    answered(page, CODE_WORD)
    sources = page.get_by_role("button", name="Source")
    sources.last.click()
    expect(page.get_by_text("handbook.md").first).to_be_visible()


@flow("files", "a file in a message")
def file():
    """Open WebUI reads it, and puts it into the message as a whole."""
    page = new_chat()
    path = HOME / "inventory.md"
    path.write_text(FILE_TEXT)
    page.locator("input[type=file]").first.set_input_files(path)
    expect(page.get_by_text("inventory.md").first).to_be_visible()
    time.sleep(2)
    say(page, "Which code word does the inventory name?")
    answered(page, FILE_CODE_WORD)


@flow("images", "an image in a message")
def image():
    """An image beside a text."""
    page = new_chat()
    path = HOME / "red.png"
    path.write_bytes(base64.b64decode(PNG))
    page.locator("input[type=file]").first.set_input_files(path)
    page.locator("#message-input-container img").first.wait_for()
    say(page, "What?")
    answered(page, "I see 1 image")


def wait_until_it_serves() -> None:
    """Return once the server answers."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(f"{ADDRESS}/health", timeout=5):
            return
        time.sleep(0.5)
    raise RuntimeError("Open WebUI did not start")


make_agent()
with running("sh", str(Path(__file__).parent / "quickstart.sh"), settings=SETTINGS):
    wait_until_it_serves()
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=arguments)
        _PAGES.append(browser.new_page(viewport={"width": 1280, "height": 860}))
        _PAGES[0].set_default_timeout(_PATIENCE_MS)
        expect.set_options(timeout=_PATIENCE_MS)
        run()
        browser.close()
