"""The services as real processes of a test."""

import os
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from deploy.demo.children import Child, ChildSpec, Started
from tests.patience import PATIENCE_SECONDS
from tests.servers.forks import ForkServers

ROOT = Path(__file__).resolve().parents[2]
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")


class RunningService(Child):
    """`python -m module arguments…` that is ready when `ready_url` answers 200.

    It sees the settings in `settings` and none of the developer's own environment; it works in `directory`, where
    `<name>.log` and the files of its defaults (`var/`) go. With `forks` it is forked instead, where that is the same.
    `python` is an interpreter with what the module needs; by default it is that of the tests.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        settings: Mapping[str, str],
        directory: Path,
        ready_url: str = "",
        forks: ForkServers | None = None,
        python: str = sys.executable,
    ):
        super().__init__(
            ChildSpec(
                name=module,
                command=[python, "-m", module, *arguments],
                environment=service_environment(settings),
                directory=directory,
                log_path=directory / f"{module}.log",
            )
        )
        self.ready_url = ready_url
        self._command = (module, *arguments)
        self._forks = forks

    def _spawn(self) -> Started:
        serving = self._forks and self._forks.serving(self._command, self.spec.environment)
        return serving.start(self._command, self.spec) if serving else super()._spawn()

    def stop(self, timeout_seconds: float = PATIENCE_SECONDS, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end and return its exit code; kill it only when it hangs."""
        return super().stop(timeout_seconds, number)

    def wait_ready(self, timeout_seconds: float = PATIENCE_SECONDS) -> None:
        """Return when it is ready; from a coroutine call it with `asyncio.to_thread`.

        Raises:
            ChildFailed: it ended, or is not ready in time.
        """
        self.wait_until(self.is_ready, timeout_seconds)

    def is_ready(self) -> bool:
        """Whether `ready_url` answers 200 now."""
        return http_status(self.ready_url) == 200


Launch = Callable[..., RunningService]


def service_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return a clean environment in which our modules can be imported from any directory."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return inherited | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | dict(settings)


def http_status(url: str) -> int:
    """Return the status of a GET, 0 when nobody answers. Proxies of the environment are not asked.

    Whose certificate it is does not matter to whoever waits for a process that they have started.
    """
    try:
        with _OPENER.open(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def _opener() -> urllib.request.OpenerDirector:
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the authorities takes longer than a question
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    https = urllib.request.HTTPSHandler(context=unchecked)
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), https)


_OPENER = _opener()


def lines_of(service: RunningService, **wanted: str) -> list[dict[str, Any]]:
    """Return the log lines that carry a value under any of the names; a line still being written is not one yet.

    Only a line feed ends a line: other tests' words, with line separators of Unicode in them, stand in the same log.
    """
    *whole, _ = service.log().split("\n")
    lines: list[dict[str, Any]] = [orjson.loads(line) for line in whole if line.startswith("{")]
    return [line for line in lines if any(line.get(name) == value for name, value in wanted.items())]
