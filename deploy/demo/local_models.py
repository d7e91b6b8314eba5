"""Servers of models that may run on this machine, which the demo offers and uses when it is told to."""

import json
from collections.abc import Mapping
from typing import cast

from deploy.demo.public_api import opener
from shared.environment import WrongSetting

SERVERS: Mapping[str, str] = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
}
"""Where each one listens if nobody has told it otherwise."""

CHOICE = "MODEL"
MODEL_SETTINGS = ("CHAT_SHELL_MODEL", "CHAT_SHELL_MODEL_BASE_URL", "CHAT_SHELL_MODELS_FILE")
_TIMEOUT_SECONDS = 2


def choose_local_model(environ: Mapping[str, str], servers: Mapping[str, str] = SERVERS) -> Mapping[str, str]:
    """Return the environment with the settings of the server that `MODEL` names; as it is where that is not set.

    Raises:
        WrongSetting: no such server is known, or it does not answer, or it has no model.
    """
    name = environ.get(CHOICE, "")
    if not name:
        return environ
    if name not in servers:
        raise WrongSetting(f"{CHOICE}: is one of {', '.join(servers)}, not {name}")
    models = list_models(servers[name])
    if not models:
        raise WrongSetting(f"{CHOICE}: no model is found at {servers[name]}; start {name}, with a model, first")
    return {**environ, "CHAT_SHELL_MODEL": models[0], "CHAT_SHELL_MODEL_BASE_URL": servers[name]}


def list_offers(environ: Mapping[str, str], servers: Mapping[str, str] = SERVERS) -> list[str]:
    """Return a line for each server that runs here, where no model is chosen yet."""
    if any(environ.get(name) for name in (CHOICE, *MODEL_SETTINGS)):
        return []
    found = ((name, list_models(url)) for name, url in servers.items())
    return [f"{name} runs here with {models[0]}: {CHOICE}={name} make run uses it." for name, models in found if models]


def list_models(url: str) -> list[str]:
    """Return the ids of the models of a server that speaks OpenAI's API; none where nobody does there."""
    try:
        with opener.open(f"{url}/models", timeout=_TIMEOUT_SECONDS) as answer:
            body: object = json.load(answer)
    except (OSError, ValueError):
        return []
    listed = cast(dict[str, object], body).get("data") if isinstance(body, dict) else None
    models = cast(list[object], listed) if isinstance(listed, list) else []
    ids = (cast(dict[str, object], model).get("id") for model in models if isinstance(model, dict))
    return [each for each in ids if isinstance(each, str)]
