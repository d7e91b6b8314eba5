"""Metrics and health checks on a port of their own."""

import asyncio
from pathlib import Path

import httpx2

from tests.e2e.pair import PairOptions, start_pair
from tests.servers.ports import free_port
from tests.servers.services import Launch

METRIC = "ballast_streams_active"
OF_OUTCOMES = ("ballast_safe_summary_total", "ballast_gate_rejections_total", "ballast_answers_cut_total")


def test_metrics_leave_the_public_ports_for_the_admin_ports(launch: Launch, tmp_path: Path) -> None:
    admin_ports = [free_port(), free_port()]
    options = PairOptions(
        backend={"BACKEND_ADMIN_PORT": str(admin_ports[0])}, chat_shell={"CHAT_SHELL_ADMIN_PORT": str(admin_ports[1])}
    )
    pair = start_pair(launch, tmp_path, options)
    for public_url in (pair.backend_url, pair.chat_shell_http_url):
        assert httpx2.get(f"{public_url}/metrics").status_code == 404
        assert httpx2.get(f"{public_url}/healthz").status_code == 200
        assert httpx2.get(f"{public_url}/readyz").status_code == 200
    of_backend, _ = asyncio.run(pair.metrics())
    assert METRIC in of_backend
    assert all(name in of_backend for name in OF_OUTCOMES)
    hidden, missing = (httpx2.get(f"{pair.backend_url}/{name}").json()["error"] for name in ("metrics", "nothing"))
    assert hidden["message"].replace("/metrics", "/nothing") == missing["message"]
    for port in admin_ports:
        admin_url = f"http://127.0.0.1:{port}"
        shown = httpx2.get(f"{admin_url}/metrics").text
        assert METRIC in shown
        assert {name in shown for name in OF_OUTCOMES} == {port == admin_ports[0]}
        assert httpx2.get(f"{admin_url}/healthz").status_code == 200
        assert httpx2.get(f"{admin_url}/readyz").status_code == 200
        assert httpx2.get(f"{admin_url}/v1/models").status_code == 404
    assert pair.chat_shell.stop() == 0
    assert pair.backend.stop() == 0
