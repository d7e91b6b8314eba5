"""What `make run` says when the demo is ready: in full to a program that reads it, in ten lines to a person."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from deploy.demo.loading import Demo
from deploy.demo.plan import Plan

_QUESTION = "How soon must a page be acknowledged, and what happens when nobody answers?"
_RESTRICTED_QUESTION = "Where are the biggest risks in our partner contracts?"
_QUESTION_ZH = "告警之后多久必须响应？"
_RESTRICTED_QUESTION_ZH = "我们的赔付流程有哪些薄弱环节？"
_REAL_MODEL = "CHAT_SHELL_MODEL=… CHAT_SHELL_MODEL_BASE_URL=… CHAT_SHELL_MODEL_API_KEY=… make run"
_STAND_IN = "The model is demo-model, a stand-in that quotes what it finds. A real one: {real}"
_PREPARED = """\
For restricted members the demo's secondary model chooses one of a few prepared texts by words in the passages.
They show the way of an answer, not its quality, and are not about your documents."""


def calm_lines(planned: Plan, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a person at a terminal reads; keys and addresses stand in a file, which `ballast` finds by itself."""
    return (
        f"Ballast runs; Ctrl-C stops it. Logs: {os.path.relpath(planned.directory)}/*.log",
        *((_STAND_IN.format(real=_REAL_MODEL),) if planned.demo_model_url else ()),
        "",
        "In another terminal, in this folder:",
        *(f"  {step}" for step in first_steps(variables)[1:]),
        f'Other programs get addresses and keys from: eval "$({_ballast()} env)"',
        "",
    )


def all_lines(planned: Plan, demo: Demo, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return all that is to be known, a line `NAME=value` for each address and key, for programs and log files."""
    model = planned.demo_model_url
    return (
        f"Ballast runs. Logs: {os.path.relpath(planned.directory)}/*.log. Ctrl-C stops it.",
        *((_STAND_IN.format(real=_REAL_MODEL), f"MODEL_URL={model}") if model else ()),
        *(f"{name}={variables[name]}" for name in ("BACKEND_URL", "USER_KEY", "RESTRICTED_KEY", "METRICS_URL")),
        "",
        "A streamed answer with citations from the handbook:",
        curl_line(planned.backend_url, demo.user_key, demo.handbook_id, _QUESTION),
        "",
        "A restricted member, whose model never sees the text:",
        curl_line(planned.backend_url, demo.restricted_key, demo.contracts_id, _RESTRICTED_QUESTION),
        *((_PREPARED,) if model else ()),
        "",
        "In Chinese, in place of base and question in these two lines:",
        f"{demo.handbook_zh_id} {_QUESTION_ZH}",
        f"{demo.contracts_id} {_RESTRICTED_QUESTION_ZH}",
        "",
        "In another terminal, here: ask, add a folder of your own, and ask about it:",
        *first_steps(variables),
    )


def page_address(planned: Plan, demo: Demo) -> str:
    """Return where the page is; the keys stand behind `#`, which no browser sends to any server."""
    keys = urlencode({"user": demo.user_key, "restricted": demo.restricted_key, "admin": planned.admin_key})
    return f"{planned.backend_url}/#{keys}"


def list_variables(planned: Plan, demo: Demo) -> dict[str, str]:
    """Return the variables that a visitor is given: those of the command `ballast`, and those of the guides."""
    model = {"MODEL_URL": planned.demo_model_url} if planned.demo_model_url else {}
    return export_variables(planned.backend_url, planned.metrics_url, demo) | model


def export_variables(backend_url: str, metrics_url: str, demo: Demo) -> dict[str, str]:
    """Return the variables of a demo at an address."""
    return {
        "BALLAST_URL": backend_url,
        "BALLAST_KEY": demo.user_key,
        "BALLAST_BASE": demo.handbook_id,
        "BACKEND_URL": backend_url,
        "METRICS_URL": metrics_url,
        "USER_KEY": demo.user_key,
        "RESTRICTED_KEY": demo.restricted_key,
    }


def first_steps(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the line that exports a visitor's variables, and three commands to try."""
    return (
        f"export {' '.join(f'{name}={value}' for name, value in variables.items())}",
        f"{_ballast()} ask {shlex.quote(_QUESTION)}",
        f"{_ballast()} add ./your-folder --base mine",
        f"{_ballast()} ask 'What do my files say about …?' --base mine",
    )


def _ballast() -> str:
    """Return how a visitor types the command: by its name, where a shell finds it by that."""
    own = Path(sys.prefix, "bin", "ballast")
    return "ballast" if shutil.which("ballast") == str(own) else os.path.relpath(own)


def curl_line(backend_url: str, key: str, base_id: str, question: str) -> str:
    """Return a command that asks a question over a base and streams the answer."""
    tools = [{"type": "file_search", "vector_store_ids": [base_id]}]
    body = json.dumps({"input": question, "stream": True, "tools": tools}, ensure_ascii=False)
    headers = f"-H 'Authorization: Bearer {key}' -H 'Content-Type: application/json'"
    return f"curl -sN {backend_url}/v1/responses {headers} -d '{body}'"
