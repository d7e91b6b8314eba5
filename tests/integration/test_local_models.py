"""Servers of models on this machine are offered, and used when they are named."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from deploy.demo.local_models import choose_local_model, list_models, list_offers
from shared.environment import WrongSetting
from tests.servers.ports import free_port


class Answering(BaseHTTPRequestHandler):
    """A server that lists models as `body` says."""

    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(type(self).body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    Answering.body = json.dumps({"object": "list", "data": [{"id": "small-model"}, {"id": "other"}]}).encode()
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_a_server_that_runs_is_offered(url: str) -> None:
    servers = {"ollama": url, "vllm": f"http://127.0.0.1:{free_port()}/v1"}
    assert list_offers({}, servers) == ["ollama runs here with small-model: MODEL=ollama make run uses it."]


@pytest.mark.parametrize("name", ["MODEL", "CHAT_SHELL_MODEL", "CHAT_SHELL_MODELS_FILE"])
def test_nothing_is_offered_where_a_model_is_chosen(name: str, url: str) -> None:
    assert list_offers({name: "x"}, {"ollama": url}) == []


def test_the_named_server_becomes_the_model(url: str) -> None:
    chosen = choose_local_model({"MODEL": "ollama"}, {"ollama": url})
    assert chosen == {"MODEL": "ollama", "CHAT_SHELL_MODEL": "small-model", "CHAT_SHELL_MODEL_BASE_URL": url}
    assert choose_local_model({"PATH": "/bin"}, {"ollama": url}) == {"PATH": "/bin"}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"data": 1}', b'{"data": [1, {"id": 2}]}'])
def test_a_server_without_models_is_named(body: bytes, url: str) -> None:
    Answering.body = body
    assert list_models(url) == []
    with pytest.raises(WrongSetting, match=r"MODEL: no model is found at .*; start ollama, with a model, first"):
        choose_local_model({"MODEL": "ollama"}, {"ollama": url})


def test_an_unknown_server_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(WrongSetting, match=r"MODEL: is one of ollama, llama\.cpp, vllm, not gpt"):
        choose_local_model({"MODEL": "gpt"})
