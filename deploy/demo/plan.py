"""Work out from the environment's settings which processes `make run` starts."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.demo.children import ChildSpec
from deploy.demo.listeners import Listener
from deploy.demo.local_embedder import LOCAL_EMBEDDER, embedder_settings
from deploy.demo.local_models import MODEL_SETTINGS
from deploy.demo.local_secrets import secret

ROOT = Path(__file__).resolve().parents[2]
# The prices are an example, so that the page can show what a prompt costs.
_MODELS = """\
models:
  - name: demo-model
    base_url: {url}
    api_key_env: CHAT_SHELL_KEY_OF_DEMO
    prices: {{input: 2.5, cached_input: 0.25, output: 10, currency: USD}}
"""
_SEEN_BY_EMBEDDER = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONUNBUFFERED")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # an address to recognise, not to listen on


@dataclass(frozen=True)
class Start:
    """A process to start, and the address that answers 200 when it is ready."""

    child: ChildSpec
    ready_url: str


@dataclass(frozen=True)
class FreePorts:
    """Ports for what no setting has given one; `embedder` is None where none is installed on this machine."""

    model: int
    metrics: int
    embedder: int | None = None


@dataclass(frozen=True)
class Plan:
    """All processes in the order of their start; `directory` holds logs, keys and secrets.

    `listeners` are those whose ports are settings: all else has free ones. `embedder` is None
    where none is installed, or where another one is set; all else runs without it, too.
    """

    starts: tuple[Start, ...]
    listeners: tuple[Listener, ...]
    backend_url: str
    metrics_url: str
    admin_key: str
    directory: Path
    demo_model_url: str | None
    embedder: Start | None


def plan(environ: Mapping[str, str], var: Path, ports: FreePorts) -> Plan:
    """Complete the settings with defaults that fit each other and with kept secrets."""
    directory = var / _directory_name(environ)
    directory.mkdir(parents=True, exist_ok=True)
    settings = {name: value for name, value in environ.items() if value}
    settings.setdefault("BACKEND_DATABASE_URL", f"sqlite+aiosqlite:///{var.resolve()}/ballast.db")
    for name in ("SERVICE_TOKEN", "BACKEND_SECRET", "BACKEND_ADMIN_KEY"):
        settings[name] = secret(environ, name, directory)
        settings.pop(f"{name}_FILE", None)  # it has been read
    backend = _listener(settings, "BACKEND_HOST", "BACKEND_PORT", "8000")
    grpc = _listener(settings, "CHAT_SHELL_HOST", "CHAT_SHELL_GRPC_PORT", "50051")
    chat_shell = _listener(settings, "CHAT_SHELL_HOST", "CHAT_SHELL_HTTP_PORT", "8001")
    backend_url = f"http://{backend.address}"
    settings.setdefault("CHAT_SHELL_BACKEND_URL", backend_url)
    settings.setdefault("BACKEND_CHAT_SHELL_URL", f"grpc://{grpc.address}")
    # The backend must end its turns by itself before `make run` kills it.
    settings.setdefault("BACKEND_DRAIN_SECONDS", "1.5")
    settings["PYTHONUNBUFFERED"] = "1"
    # whoever may reach the API is not to read the metrics
    metrics = _listener(settings, "BACKEND_HOST", "BACKEND_ADMIN_PORT", str(ports.metrics))
    settings["BACKEND_ADMIN_PORT"] = metrics.port
    model = _demo_model(settings, directory, str(ports.model))
    embedder = _embedder(settings, directory, ports.embedder)
    starts = (
        *model,
        Start(_child("chat_shell", (), settings, directory), f"http://{chat_shell.address}/readyz"),
        Start(_child("backend", (), settings, directory), f"{backend_url}/readyz"),
    )
    return Plan(
        starts,
        (backend, grpc, chat_shell),
        backend_url,
        f"http://{metrics.address}/metrics",
        settings["BACKEND_ADMIN_KEY"],
        directory,
        f"http://127.0.0.1:{ports.model}/v1" if model else None,
        embedder,
    )


def _directory_name(environ: Mapping[str, str]) -> str:
    """Return a directory for each database, because stored keys are valid for one database only."""
    database_url = environ.get("BACKEND_DATABASE_URL", "")
    if not database_url:
        return "demo"
    return f"demo-{hashlib.sha256(database_url.encode()).hexdigest()[:12]}"


def _demo_model(settings: dict[str, str], directory: Path, port: str) -> tuple[Start, ...]:
    """Plan the demo model, and configure it, when no other model is."""
    if any(name in settings for name in MODEL_SETTINGS):
        return ()
    models_file = directory / "models.yaml"
    models_file.write_text(_MODELS.format(url=f"http://127.0.0.1:{port}/v1"), encoding="utf-8")
    settings["CHAT_SHELL_MODELS_FILE"] = str(models_file.resolve())
    settings.setdefault("CHAT_SHELL_KEY_OF_DEMO", "demo")
    arguments = ("--host", "127.0.0.1", "--port", port)
    return (Start(_child("deploy.demo.model", arguments, settings, directory), f"http://127.0.0.1:{port}/v1/models"),)


def _embedder(settings: dict[str, str], directory: Path, port: int | None) -> Start | None:
    """Plan an embedder of this machine, and configure it, when no other embedder is; it sees no secret."""
    if port is None or "BACKEND_EMBEDDING_BASE_URL" in settings:
        return None
    for name, value in embedder_settings(port).items():
        settings.setdefault(name, value)
    seen = {name: settings[name] for name in _SEEN_BY_EMBEDDER if name in settings}
    return Start(_child(LOCAL_EMBEDDER, (str(port),), seen, directory), f"http://127.0.0.1:{port}/health")


def _child(module: str, arguments: tuple[str, ...], settings: dict[str, str], directory: Path) -> ChildSpec:
    return ChildSpec(
        name=module,
        command=(sys.executable, "-m", module, *arguments),
        environment=settings,
        directory=ROOT,
        log_path=directory / f"{module.rpartition('.')[2]}.log",
    )


def _listener(settings: Mapping[str, str], host_name: str, port_name: str, default_port: str) -> Listener:
    host = settings.get(host_name, "127.0.0.1")
    return Listener(port_name, _EVERYWHERE.get(host, host), settings.get(port_name, default_port))
