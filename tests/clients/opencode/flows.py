"""Flows of opencode over Chat Completions and over Responses: runs, its tools, sessions, files, an MCP server."""

import base64
import json

from commands import ENDLESS, check_interrupted, command, make_agent, new_folder, tells, works
from flow_kit import (
    CODE_WORD,
    FILE_CODE_WORD,
    FILE_TEXT,
    KNOWLEDGE_QUESTION,
    MODEL,
    PNG,
    SERVER_URL,
    check,
    flow,
    questions,
    run,
)

SETTINGS = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
PACKAGES = {"chat": "@ai-sdk/openai-compatible", "responses": "@ai-sdk/openai"}


def configured(mode: str, name: str, **further):
    """Make a folder with the configuration that opencode's page on providers shows."""
    folder = new_folder(f"{mode}-{name}")
    modalities = {"input": ["text", "image"], "output": ["text"]}
    model = {
        "tool_call": True,
        "attachment": True,
        "modalities": modalities,
        "limit": {"context": 100000, "output": 4000},
    }
    ours = {
        "npm": PACKAGES[mode],
        "name": "Ballast",
        "options": {"baseURL": "{env:OPENAI_BASE_URL}", "apiKey": "{env:OPENAI_API_KEY}"},
        "models": dict.fromkeys((MODEL, "opencode-handbook", "no-such-model"), model),
    }
    config = {"share": "disabled", "permission": "allow", "provider": {"ballast": ours}, **further}
    (folder / "opencode.json").write_text(json.dumps(config))
    return folder


def asked(folder, text: str, *words: str, model: str = MODEL):
    """Run `opencode run` on a prompt from standard input."""
    run_words = ("opencode", "run", "-m", f"ballast/{model}", *words)
    return works(*run_words, given=text, settings=SETTINGS, folder=folder)


def modes(kind: str, name: str):
    """Register a flow once for each API; the function takes the mode."""

    def register(body):
        for mode in PACKAGES:
            flow(kind, f"{mode}, {name}")(lambda mode=mode: body(mode))
        return body

    return register


@modes("plain", "run")
def plain(mode: str):
    """The answer on standard output."""
    folder = configured(mode, "plain")
    words = ("opencode", "run", "-m", f"ballast/{MODEL}", "Hello", "opencode")
    check("Hello opencode" in works(*words, settings=SETTINGS, folder=folder).out)


@modes("streamed", "run --format json")
def streamed(mode: str):
    """The events of a run."""
    events = asked(configured(mode, "streamed"), "Hello stream", "--format", "json").events
    texts = [event["part"]["text"] for event in events if event["type"] == "text"]
    check("Hello stream" in texts[-1], events)
    finished = [event["part"] for event in events if event["type"] == "step_finish"]
    check(finished[-1]["tokens"]["input"] > 0 and finished[-1]["reason"] == "stop", finished)


@modes("streamed", "run --thinking")
def thinking(mode: str):
    """The thoughts are shown."""
    events = asked(configured(mode, "thinking"), "Think: of a name", "--thinking", "--format", "json").events
    check("reasoning" in [event["type"] for event in events], events)


@modes("tools", "bash, write, read, edit in rounds")
def tools(mode: str):
    """A file is written, read, changed and shown."""
    folder = configured(mode, "tools")
    path = folder / "made.txt"
    text = (
        f'Use write({{"filePath": "{path}", "content": "marmalade"}}) then read({{"filePath": "{path}"}})'
        f' then edit({{"filePath": "{path}", "oldString": "marmalade", "newString": "quince"}})'
        ' then bash({"command": "cat made.txt", "description": "Show it"}).'
    )
    said = asked(folder, text).out
    check(path.read_text() == "quince" and "quince" in said, said)


@modes("tools", "two at once, and one that fails")
def parallel(mode: str):
    """Calls of one round, and an error as a result."""
    folder = configured(mode, "parallel")
    text = (
        'Use bash({"command": "echo apricot", "description": "A"}) and'
        ' bash({"command": "echo plum", "description": "B"})'
        ' then read({"filePath": "/nowhere/at/all.txt"}).'
    )
    said = asked(folder, text).out
    check("apricot" in said and "plum" in said and "not found" in said.lower(), said)


@modes("knowledge", "an agent as the model")
def agent(mode: str):
    """The handbook is searched on our side, beside the tools of opencode."""
    make_agent()
    said = asked(configured(mode, "agent"), KNOWLEDGE_QUESTION, model="opencode-handbook").out
    check(f"{CODE_WORD} [1]" in said, said)


@modes("knowledge", "the MCP server")
def mcp(mode: str):
    """The knowledge tools in its own loop."""
    remote = {"type": "remote", "url": f"{SERVER_URL}/mcp", "headers": {"Authorization": "Bearer {env:OPENAI_API_KEY}"}}
    folder = configured(mode, "mcp", mcp={"ballast": {**remote, "oauth": False}})
    said = asked(folder, 'Use search_knowledge({"query": "code word"}).').out
    check(CODE_WORD in said, said)


@modes("history", "run --continue")
def continued(mode: str):
    """Five turns, each a process of its own."""
    folder = configured(mode, "continued")
    for number, question in enumerate(questions(f"{mode}, run --continue")):
        # with a title given nothing but the questions is asked
        check(question in asked(folder, question, *(["--continue"] if number else ["--title", "Five"])).out)


@modes("history", "run --session, with tools")
def sessions(mode: str):
    """A session goes on after calls and their results."""
    folder = configured(mode, "session")
    first, *others = questions(f"{mode}, run --session, with tools")
    text = f'{first} Use bash({{"command": "echo quince", "description": "A"}}).'
    session = asked(folder, text, "--title", "Five", "--format", "json").events[0]["sessionID"]
    for question in others:
        check(question in asked(folder, question, "--session", session).out)


@modes("images", "run -f")
def image(mode: str):
    """An image beside a text."""
    folder = configured(mode, "image")
    (folder / "red.png").write_bytes(base64.b64decode(PNG))
    said = asked(folder, "What?", "-f", "red.png").out
    check("I see 1 image" in said, said)


@modes("files", "run -f")
def file(mode: str):
    """A text file, which opencode reads itself."""
    folder = configured(mode, "file")
    (folder / "inventory.md").write_text(FILE_TEXT)
    said = asked(folder, "Which code word does the inventory name?", "-f", "inventory.md").out
    check(FILE_CODE_WORD in said, said)


@modes("errors", "unknown model, wrong key")
def refusals(mode: str):
    """What the user reads."""
    folder = configured(mode, "errors")
    words = ("opencode", "run", "-m")
    outcome = command(*words, "ballast/no-such-model", "x", settings=SETTINGS, folder=folder)
    tells(outcome, "no-such-model", MODEL)
    outcome = command(
        *words, f"ballast/{MODEL}", "x", settings=SETTINGS | {"OPENAI_API_KEY": "sk-wrong"}, folder=folder
    )
    tells(outcome, "key")


@modes("stopping", "Ctrl-C")
def stopped(mode: str):
    """The provider's stream ends with the client."""
    folder = configured(mode, "stopped")
    mark = f"{ENDLESS}-{mode}-opencode"
    words = ("opencode", "run", "-m", f"ballast/{MODEL}", *mark.split())
    check_interrupted(mark, *words, settings=SETTINGS, folder=folder)


@modes("options", "temperature, effort, tags of a model")
def options(mode: str):
    """Options of agents and of models."""
    agent = {"model": f"ballast/{MODEL}", "mode": "primary", "temperature": 0.2, "top_p": 0.9, "prompt": "Be kind."}
    folder = configured(mode, "options", agent={"kind": {**agent, "reasoningEffort": "high"}})
    check("Hello options" in asked(folder, "Hello options", "--agent", "kind").out)


run()
