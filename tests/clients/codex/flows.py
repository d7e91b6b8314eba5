"""Flows of Codex CLI: one-shot runs, its shell, sessions that go on, images, forms, an MCP server."""

import base64
import json

from commands import AGENT, ENDLESS, HOME, check_interrupted, command, make_agent, new_folder, tells, wait_asked, works
from flow_kit import (
    BASE_URL,
    CODE_WORD,
    KNOWLEDGE_QUESTION,
    MODEL,
    PERSON_SCHEMA,
    PNG,
    SERVER_URL,
    check,
    flow,
    questions,
    run,
)

CONFIG = f"""
model = "{MODEL}"
model_provider = "ballast"
sandbox_mode = "danger-full-access"
approval_policy = "never"

[model_providers.ballast]
name = "Ballast"
base_url = "{BASE_URL}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
MCP = f"""
[mcp_servers.ballast]
url = "{SERVER_URL}/mcp"
bearer_token_env_var = "OPENAI_API_KEY"
"""


def configured(name: str, config: str = CONFIG):
    """Make a home of Codex with a configuration and a repository to work in; return the words and settings of a run."""
    home = HOME / f"codex-{name}"
    home.mkdir()
    (home / "config.toml").write_text(config)
    return new_folder(name), {"CODEX_HOME": str(home)}


def executed(name: str, *words: str, given: str = "", config: str = CONFIG):
    """Run `codex exec` in a folder of its own."""
    folder, settings = configured(name, config)
    return works("codex", "exec", *words, given=given, settings=settings, folder=folder)


@flow("plain", "exec")
def plain():
    """The last message on standard output."""
    check("Hello codex" in executed("plain", "Hello codex").out)


@flow("plain", "exec, the prompt from standard input, -o")
def from_input():
    """The prompt is piped in, the answer goes to a file."""
    folder, settings = configured("piped")
    works("codex", "exec", "-o", "answer.txt", "-", given="Hello pipe", settings=settings, folder=folder)
    check("Hello pipe" in (folder / "answer.txt").read_text())


@flow("plain", "exec --ephemeral, AGENTS.md")
def instructions():
    """The repository's instructions are sent."""
    folder, settings = configured("instructed")
    (folder / "AGENTS.md").write_text("Say it in the words of a gardener of 1850.\n")
    works("codex", "exec", "--ephemeral", "Hello gardener", settings=settings, folder=folder)
    check(wait_asked("words of a gardener of 1850") >= 0)


@flow("streamed", "exec --json")
def streamed():
    """The events of a turn."""
    events = executed("streamed", "--json", "Hello stream").events
    kinds = [event["type"] for event in events]
    check(kinds[0] == "thread.started" and kinds[-1] == "turn.completed", kinds)
    check(events[-1]["usage"]["input_tokens"] > 0 and events[-1]["usage"]["output_tokens"] > 0, events[-1])
    texts = [event["item"]["text"] for event in events if event.get("item", {}).get("type") == "agent_message"]
    check("Hello stream" in texts[-1], texts)


@flow("streamed", "reasoning in exec --json")
def reasoning():
    """The thoughts are items of their own."""
    words = ("--json", "-c", "model_reasoning_effort=high", "-c", "show_raw_agent_reasoning=true", "Think: of a name")
    kinds = [event.get("item", {}).get("type") for event in executed("thinking", *words).events]
    check("reasoning" in kinds and "agent_message" in kinds, kinds)


@flow("structured", "exec --output-schema")
def structured():
    """The last message has the form."""
    folder, settings = configured("shaped")
    (folder / "schema.json").write_text(json.dumps(PERSON_SCHEMA))
    words = ("codex", "exec", "--output-schema", "schema.json", "Who?")
    said = works(*words, settings=settings, folder=folder).out
    check(set(json.loads(said)) == {"name", "age"}, said)


@flow("tools", "a command of the shell")
def shell():
    """One call of its own tool."""
    folder, settings = configured("shell")
    asked = 'Use exec_command({"cmd": "echo marmalade > made.txt; cat made.txt"}).'
    said = works("codex", "exec", asked, settings=settings, folder=folder).out
    check((folder / "made.txt").read_text() == "marmalade\n")
    check("marmalade" in said, said)


@flow("tools", "commands one after another, and two at once")
def rounds():
    """Several calls of one turn."""
    folder, settings = configured("rounds")
    asked = (
        'Use exec_command({"cmd": "echo one > a.txt"}) then exec_command({"cmd": "echo two >> a.txt"})'
        ' then exec_command({"cmd": "cat a.txt"}) and exec_command({"cmd": "wc -l a.txt"}).'
    )
    said = works("codex", "exec", asked, settings=settings, folder=folder).out
    check((folder / "a.txt").read_text() == "one\ntwo\n")
    check("2 a.txt" in said, said)


@flow("tools", "a command that fails")
def failing():
    """The model reads the exit code."""
    said = executed("failing", 'Use exec_command({"cmd": "echo lost; exit 3"}).').out
    check("lost" in said and "3" in said, said)


@flow("tools", "update_plan, view_image")
def own_tools():
    """Tools of Codex other than the shell."""
    folder, settings = configured("own")
    (folder / "red.png").write_bytes(base64.b64decode(PNG))
    asked = f'Use view_image({{"path": "{folder / "red.png"}"}}) then exec_command({{"cmd": "echo seen"}}).'
    said = works("codex", "exec", asked, settings=settings, folder=folder).out
    check("seen" in said, said)


@flow("knowledge", "an agent as the model")
def agent():
    """The handbook is searched on our side, beside the tools of Codex."""
    said = executed("agent", "-m", make_agent(), KNOWLEDGE_QUESTION).out
    check(f"{CODE_WORD} [1]" in said, said)
    asked = 'Use exec_command({"cmd": "echo apricot"}).'
    check("apricot" in executed("agent-shell", "-m", AGENT, asked).out)


@flow("knowledge", "the MCP server")
def mcp():
    """The knowledge tools in its own loop."""
    said = executed("mcp", 'Use search_knowledge({"query": "code word"}).', config=CONFIG + MCP).out
    check(CODE_WORD in said, said)


@flow("history", "exec resume --last")
def resumed():
    """Five turns, each a process of its own."""
    folder, settings = configured("resumed")
    for number, question in enumerate(questions("exec resume --last")):
        words = ("resume", "--last") if number else ()
        check(question in works("codex", "exec", *words, question, settings=settings, folder=folder).out)


@flow("history", "exec resume by id, with commands")
def resumed_with_commands():
    """A session goes on after calls and their outputs."""
    folder, settings = configured("resumed-id")
    asked = questions("exec resume by id, with commands")
    first = f'{asked[0]} Use exec_command({{"cmd": "echo quince"}}).'
    events = works("codex", "exec", "--json", first, settings=settings, folder=folder).events
    for question in asked[1:]:
        words = ("codex", "exec", "resume", events[0]["thread_id"])
        check(question in works(*words, question, settings=settings, folder=folder).out)


@flow("images", "exec -i")
def image():
    """An image beside a text."""
    folder, settings = configured("image")
    (folder / "red.png").write_bytes(base64.b64decode(PNG))
    said = works("codex", "exec", "What?", "-i", "red.png", settings=settings, folder=folder).out
    check("I see 1 image" in said, said)


@flow("errors", "unknown model")
def unknown_model():
    """The message lists those that there are."""
    folder, settings = configured("unknown")
    outcome = command("codex", "exec", "-m", "no-such-model", "x", settings=settings, folder=folder)
    check(outcome.code != 0, outcome)
    tells(outcome, "no-such-model", MODEL)


@flow("errors", "wrong key")
def wrong_key():
    """What the user reads."""
    folder, settings = configured("wrong-key")
    settings["OPENAI_API_KEY"] = "sk-wrong"
    outcome = command("codex", "exec", "x", settings=settings, folder=folder)
    check(outcome.code != 0, outcome)
    tells(outcome, "401", "key")


@flow("stopping", "Ctrl-C")
def stopped():
    """The provider's stream ends with the client."""
    folder, settings = configured("stopped")
    asked = f"{ENDLESS}, codex"
    check_interrupted(asked, "codex", "exec", asked, settings=settings, folder=folder)


@flow("options", "effort, summary, verbosity, web search, service tier")
def options():
    """Settings that stand in a config.toml."""
    efforts = 'model_reasoning_effort = "high"\nmodel_reasoning_summary = "detailed"\nmodel_verbosity = "low"\n'
    config = f'{efforts}web_search = "live"\n{CONFIG}'
    check("Hello options" in executed("options", "Hello options", config=config).out)


run()
