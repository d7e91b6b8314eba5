"""What the page's tests run against: the pair with two models, the demo's knowledge, and the keys of its people.

`demo-model` answers as the demo does, and has prices; `fake-model` answers as a test scripts it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.demo.loading import Demo, load
from deploy.demo.public_api import PublicApi
from tests.e2e.pair import ADMIN_KEY, Pair, PairOptions, start_pair
from tests.servers.ports import free_port
from tests.servers.services import Launch

EXACT = "What does Harrow & Finch pay per parcel?"
DEMO_MODEL = "demo-model"
_MODELS = """\
models:
  - name: {name}
    base_url: {url}
    api_key_env: CHAT_SHELL_KEY_OF_DEMO
    prices: {{input: 2.0, cached_input: 0.2, output: 8.0, currency: EUR}}
  - name: small
    model: {name}
    base_url: {url}
    api_key_env: CHAT_SHELL_KEY_OF_DEMO
    context_window_tokens: 8000
    max_output_tokens: 500
"""


@dataclass(frozen=True)
class Running:
    """The pair, what the demo has loaded into it, an administrator's key, and where the backend's metrics need none."""

    pair: Pair
    demo: Demo
    admin_key: str
    metrics_url: str

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"{self.pair.backend_url}/"

    @property
    def keys(self) -> Mapping[str, str]:
        """The keys that the address passes to the page."""
        return {"user": self.demo.user_key, "restricted": self.demo.restricted_key, "admin": self.admin_key}


def start_running(launch: Launch, directory: Path, backend: Mapping[str, str] | None = None, **more: str) -> Running:
    """Start everything, the backend with these settings and chat_shell with `more`, and load the demo's knowledge."""
    directory.mkdir(parents=True, exist_ok=True)
    demo_port = free_port()
    demo_url = f"http://127.0.0.1:{demo_port}/v1"
    demo_model = launch(
        "deploy.demo.model",
        *("--port", str(demo_port), "--pause-seconds", "0.002"),
        settings={},
        directory=directory,
        ready_url=f"{demo_url}/models",
    )
    models_file = directory / "models.yaml"
    models_file.write_text(_MODELS.format(name=DEMO_MODEL, url=demo_url), encoding="utf-8")
    chat_shell = {
        "CHAT_SHELL_MODELS_FILE": str(models_file),
        "CHAT_SHELL_SAFE_SUMMARY_MODEL": DEMO_MODEL,
        "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": demo_url,
        "CHAT_SHELL_SAFE_SUMMARY_API_KEY": "demo",
        "CHAT_SHELL_KEY_OF_DEMO": "demo",
        **more,
    }
    metrics_port = str(free_port())
    options = PairOptions(backend={"BACKEND_ADMIN_PORT": metrics_port, **(backend or {})}, chat_shell=chat_shell)
    pair = start_pair(launch, directory / "pair", options)
    demo_model.wait_ready()
    demo = load(lambda key: PublicApi(pair.backend_url, key), ADMIN_KEY, directory)
    return Running(pair, demo, ADMIN_KEY, f"http://127.0.0.1:{metrics_port}/metrics")
