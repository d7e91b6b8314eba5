"""Flows of the command `llm` over Chat Completions and over Responses: prompts, conversations, schemas, tools."""

import base64
import json
from pathlib import Path

from commands import ENDLESS, HOME, check_interrupted, command, make_agent, tells, works
from flow_kit import (
    API_KEY,
    BASE_URL,
    CODE_WORD,
    FILE_CODE_WORD,
    FILE_TEXT,
    KNOWLEDGE_QUESTION,
    MODEL,
    ONE_ROUND,
    PARALLEL,
    PNG,
    TWO_ROUNDS,
    check,
    check_turn,
    flow,
    questions,
    run,
)

MODES = ("chat", "responses")
FUNCTIONS = '''
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return {"Paris": "rain in Paris", "Rome": "sun in Rome"}[city]
'''


def configured(name: str) -> dict[str, str]:
    """Make a folder of `llm` with the models in the file that its page on compatible models shows."""
    folder = HOME / f"llm-{name}"
    folder.mkdir()
    models = [
        {
            "model_id": f"{mode}-{model}", "model_name": model, "api_base": BASE_URL, "api_key_name": "ballast",
            "vision": True, "supports_schema": True, "supports_tools": True, "reasoning": True,
            "responses": mode == "responses",
        }
        for mode in MODES for model in (MODEL, "llm-cli-handbook", "no-such-model")
    ]  # fmt: skip
    (folder / "extra-openai-models.yaml").write_text(json.dumps(models))  # JSON is YAML
    (folder / "keys.json").write_text(json.dumps({"ballast": API_KEY}))
    return {"LLM_USER_PATH": str(folder)}


def modes(kind: str, name: str):
    """Register a flow once for each API; the function takes the model's name and the settings."""

    def register(body):
        for mode in MODES:
            settings_name = f"{mode}-{body.__name__}"
            flow(kind, f"{mode}, {name}")(
                lambda mode=mode, settings_name=settings_name: body(f"{mode}-{MODEL}", configured(settings_name))
            )
        return body

    return register


def said(model: str, settings: dict[str, str], *words: str, given: str = "") -> str:
    """Run `llm` and return what it prints."""
    return works("llm", "-m", model, *words, given=given, settings=settings).out


@modes("plain", "--no-stream, -s, standard input, --async")
def plain(model, settings):
    """The ways of a prompt."""
    check_turn(1, said(model, settings, "--no-stream", "Hello llm"))
    check_turn(1, said(model, settings, "-s", "Be kind.", "--no-stream", "Hello system"))
    check("of the pipe" in said(model, settings, "-s", "Sum it up.", given="The words of the pipe"))
    check_turn(1, said(model, settings, "--async", "Hello async"))


@flow("plain", "openai endpoint, --models, --responses")
def endpoint():
    """Without any configuration."""
    words = ("llm", "openai", "endpoint", BASE_URL, "--key", API_KEY)
    settings = configured("endpoint")
    check(MODEL in works(*words, "--models", settings=settings).out)
    check_turn(1, works(*words, "-m", MODEL, "Hello endpoint", settings=settings).out)
    check_turn(1, works(*words, "-m", MODEL, "--responses", "Hello endpoint", settings=settings).out)


@modes("streamed", "prompt, --usage, logs")
def streamed(model, settings):
    """The default of the command."""
    outcome = works("llm", "-m", model, "-u", "Hello stream", settings=settings)
    check_turn(1, outcome.out)
    check("Token usage:" in outcome.err, outcome.err)
    logged = json.loads(works("llm", "logs", "--json", settings=settings).out)
    check(logged[0]["input_tokens"] > 0 and logged[0]["output_tokens"] > 0, logged)


@modes("streamed", "reasoning")
def reasoning(model, settings):
    """The thoughts are told apart."""
    outcome = works("llm", "-m", model, "-o", "reasoning_effort", "low", "Think: of a name", settings=settings)
    check_turn(1, outcome.out)


@modes("structured", "--schema, --schema-multi")
def structured(model, settings):
    """Forms in the short language of `llm`."""
    person = json.loads(said(model, settings, "--schema", "name, age int", "Who?"))
    check(set(person) == {"name", "age"}, person)
    many = json.loads(said(model, settings, "--schema-multi", "name, age int", "Who are they?"))
    check(isinstance(many["items"], list), many)


@modes("tools", "--functions: one, two rounds, two at once")
def tools(model, settings):
    """Functions of a file, called by `llm` itself."""
    path = Path(settings["LLM_USER_PATH"]) / "weather.py"
    path.write_text(FUNCTIONS)
    for asked, wanted in ((ONE_ROUND, ["rain in Paris"]), (TWO_ROUNDS, ["sun in Rome"]), (PARALLEL, ["rain", "sun"])):
        text = said(model, settings, "--functions", str(path), asked)
        check(all(word in text for word in wanted), text)


@modes("tools", "-T, then a turn after it")
def tool_and_on(model, settings):
    """A tool that `llm` brings, and the conversation behind it."""
    check("utc" in said(model, settings, "-T", "llm_time", "Use llm_time({}).").lower())
    check_turn(2, said(model, settings, "-c", "Thank you"))


@modes("knowledge", "an agent as the model")
def agent(model, settings):
    """The handbook is searched on our side."""
    mode = model.partition("-")[0]
    make_agent()
    text = said(f"{mode}-llm-cli-handbook", settings, KNOWLEDGE_QUESTION)
    check(f"{CODE_WORD} [1]" in text, text)


@modes("history", "-c")
def history(model, settings):
    """Five turns, each a process of its own."""
    mode = model.partition("-")[0]
    for number, question in enumerate(questions(f"{mode}, -c"), 1):
        check_turn(number, said(model, settings, *(["-c"] if number > 1 else []), question))


@modes("history", "chat")
def chat(model, settings):
    """Five turns in one process."""
    mode = model.partition("-")[0]
    lines = "\n".join((*questions(f"{mode}, chat"), "exit", ""))
    check_turn(5, works("llm", "chat", "-m", model, given=lines, settings=settings).out)


@modes("images", "-a")
def image(model, settings):
    """An attachment."""
    path = Path(settings["LLM_USER_PATH"]) / "red.png"
    path.write_bytes(base64.b64decode(PNG))
    text = said(model, settings, "What?", "-a", str(path))
    check("I see 1 image" in text, text)


@modes("files", "-f")
def fragment(model, settings):
    """A text as a fragment of the prompt."""
    path = Path(settings["LLM_USER_PATH"]) / "inventory.md"
    path.write_text(FILE_TEXT)
    text = said(model, settings, "-f", str(path), "Which code word does the inventory name?")
    check(FILE_CODE_WORD in text, text)


@modes("errors", "unknown model, wrong key")
def refusals(model, settings):
    """What the user reads."""
    mode = model.partition("-")[0]
    tells(command("llm", "-m", f"{mode}-no-such-model", "x", settings=settings), "no-such-model", MODEL)
    tells(command("llm", "-m", model, "--key", "sk-wrong", "x", settings=settings), "key")


@modes("stopping", "Ctrl-C")
def stopped(model, settings):
    """The provider's stream ends with the client."""
    mark = f"{ENDLESS}, llm {model}"
    check_interrupted(mark, "llm", "-m", model, mark, settings=settings)


@modes("options", "temperature, max_tokens, top_p")
def options(model, settings):
    """Options of the command."""
    words = ["-o", "temperature", "0.2", "-o", "top_p", "0.9"]
    if model.startswith("chat"):
        further = (
            ("max_tokens", "300"),
            ("seed", "3"),
            ("stop", "END"),
            ("presence_penalty", "0.1"),
            ("frequency_penalty", "0.1"),
        )
        words += [word for name, value in further for word in ("-o", name, value)]
    check_turn(1, said(model, settings, *words, "Hello options"))
    if model.startswith("chat"):
        check(json.loads(said(model, settings, "-o", "json_object", "true", "Who, as JSON?")))


run()
