"""Says at the end of a run what it could not look at."""

import pytest

from tests.unit.deploy.manifests import KUBECTL


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the overlays that were not rendered."""
    if KUBECTL is None:
        terminalreporter.write_line("kubectl is not installed: the overlays of deploy/kustomize were not rendered")
