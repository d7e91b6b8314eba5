"""Flows of aider: a file is edited in each of its formats, questions, commits, several turns, a stop."""

from commands import (
    ENDLESS,
    check_interrupted,
    command,
    make_agent,
    model_requests,
    new_folder,
    tells,
    wait_asked,
    works,
)
from flow_kit import (
    BASE_URL,
    CODE_WORD,
    FILE_CODE_WORD,
    FILE_TEXT,
    KNOWLEDGE_QUESTION,
    MODEL,
    check,
    flow,
    questions,
    run,
)

SETTINGS = {"OPENAI_API_BASE": BASE_URL, "AIDER_ANALYTICS_DISABLE": "true"}
QUIET = ("--yes-always", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--no-pretty")
GREETING = 'def greet():\n    return "hello"\n'
CHANGED = 'def greet():\n    return "good day"\n'
SEARCH = '<<<<<<< SEARCH\n    return "hello"\n=======\n    return "good day"\n>>>>>>> REPLACE'
UDIFF = '--- greet.py\n+++ greet.py\n@@ ... @@\n def greet():\n-    return "hello"\n+    return "good day"'
PATCH = (
    "*** Begin Patch\n*** Update File: greet.py\n@@\n def greet():\n"
    '-    return "hello"\n+    return "good day"\n*** End Patch'
)
FORMATS = {
    "whole": f"greet.py\n```\n{CHANGED}```",
    "diff": f"greet.py\n```python\n{SEARCH}\n```",
    "diff-fenced": f"```python\ngreet.py\n{SEARCH}\n```",
    "udiff": f"```diff\n{UDIFF}\n```",
    "patch": PATCH,
}


def repository(name: str):
    """Make a repository with a file that is committed."""
    folder = new_folder(name)
    (folder / "greet.py").write_text(GREETING)
    works("git", "add", "greet.py", folder=folder)
    works("git", "commit", "-q", "-m", "Greet", folder=folder)
    return folder


def aider(folder, *words: str, model: str = MODEL, settings=SETTINGS):
    """Run aider on a model of ours."""
    return works("aider", *QUIET, "--model", f"openai/{model}", *words, settings=settings, folder=folder)


def edits(format_name: str, *words: str) -> None:
    """Let aider edit the file and commit the change, with a message that it asks the model for."""
    folder = repository(f"{format_name}{'-'.join(words)}".replace("--", "-"))
    outcome = aider(
        folder, "--edit-format", format_name, *words, "-m", f"Say {{{{{{{FORMATS[format_name]}}}}}}}", "greet.py"
    )
    check((folder / "greet.py").read_text() == CHANGED, outcome.out[-1500:], outcome.err[-500:])
    check(len(works("git", "log", "--oneline", folder=folder).out.splitlines()) == 2, outcome.out[-1500:])


for each in FORMATS:
    flow("plain", f"--edit-format {each}, --no-stream")(lambda each=each: edits(each, "--no-stream"))
    flow("streamed", f"--edit-format {each}")(lambda each=each: edits(each))


@flow("plain", "--edit-format ask")
def ask():
    """A question about the code."""
    check(
        "What does it do" in aider(repository("ask"), "--edit-format", "ask", "-m", "What does it do?", "greet.py").out
    )


@flow("plain", "--architect")
def architect():
    """One model call plans, another one edits."""
    folder = repository("architect")
    words = ("--architect", "--auto-accept-architect", "--editor-edit-format", "editor-whole")
    outcome = aider(folder, *words, "-m", f"Say {{{{{{{FORMATS['whole']}}}}}}}", "greet.py")
    check(outcome.out.count("good day") >= 1, outcome.out[-1500:])


@flow("streamed", "Think:")
def thinking():
    """The thoughts come before the answer."""
    out = aider(repository("thinking"), "--edit-format", "ask", "-m", "Think: of a name").out
    check("Think: of a name" in out, out)


@flow("knowledge", "an agent as the model")
def agent():
    """The handbook is searched on our side."""
    out = aider(repository("agent"), "--edit-format", "ask", "-m", KNOWLEDGE_QUESTION, model=make_agent()).out
    check(f"{CODE_WORD} [1]" in out, out)


TURNS = """
import sys
from aider.coders import Coder
from aider.io import InputOutput
from aider.models import Model
coder = Coder.create(main_model=Model(sys.argv[1]), edit_format="ask", io=InputOutput(yes=True), use_git=False)
for question in sys.argv[2:]:
    print(coder.run(question))
"""


@flow("plain", "several messages in one session")
def history():
    """Five turns through its Python interface."""
    folder = repository("turns")
    (folder / "turns.py").write_text(TURNS)
    asked = questions(
        "several messages in one session"
    )  # aider adds words to the newest one, and takes them away later
    out = works("python", "turns.py", f"openai/{MODEL}", *asked, settings=SETTINGS, folder=folder).out
    check(all(question in out for question in asked), out[-1500:])


@flow("plain", "--restore-chat-history")
def restored():
    """A second process goes on."""
    folder = repository("restored")
    aider(folder, "--edit-format", "ask", "-m", "My plum is ripe.")
    aider(folder, "--edit-format", "ask", "--restore-chat-history", "-m", "And my pear?")
    check(wait_asked("And my pear?") >= 0)
    return


@flow("files", "--read")
def read_only():
    """A file that is only read."""
    folder = repository("read")
    (folder / "inventory.md").write_text(FILE_TEXT)
    asked = "Which code word does the inventory name?"
    aider(folder, "--edit-format", "ask", "--read", "inventory.md", "-m", asked)
    check(FILE_CODE_WORD in str(model_requests(asked)))


@flow("errors", "unknown model, wrong key")
def refusals():
    """What the user reads."""
    folder = repository("errors")
    words = ("aider", *QUIET, "--edit-format", "ask", "-m", "x", "--model")
    tells(command(*words, "openai/no-such-model", settings=SETTINGS, folder=folder), "no-such-model", MODEL)
    wrong = SETTINGS | {"OPENAI_API_KEY": "sk-wrong"}
    tells(command(*words, f"openai/{MODEL}", settings=wrong, folder=folder), "key")


@flow("stopping", "Ctrl-C")
def stopped():
    """The provider's stream ends with the client."""
    mark = f"{ENDLESS}, aider"
    words = ("aider", *QUIET, "--model", f"openai/{MODEL}", "--edit-format", "ask", "-m", mark)
    check_interrupted(mark, *words, settings=SETTINGS, folder=repository("stopped"))


@flow("options", "effort, thinking tokens, extra_params")
def options():
    """Settings that are sent though aider does not know the model."""
    folder = repository("options")
    path = folder / "settings.yml"
    path.write_text(
        f"- name: openai/{MODEL}\n  extra_params:\n    temperature: 0.2\n"
        "    extra_body:\n      top_k: 20\n      min_p: 0.1\n"
    )
    words = ("--model-settings-file", str(path), "--no-check-model-accepts-settings", "--reasoning-effort", "high")
    out = aider(folder, "--edit-format", "ask", *words, "--timeout", "60", "-m", "Hello options").out
    check("Hello options" in out, out)
    out = aider(folder, "--edit-format", "ask", *words[2:3], "--thinking-tokens", "1k", "-m", "Hello thinking").out
    check("Hello thinking" in out, out)


run()
