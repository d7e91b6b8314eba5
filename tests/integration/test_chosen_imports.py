"""A library that no setting chooses is not imported: it would cost memory in every process (ADR 11)."""

import subprocess
import sys
from pathlib import Path

from tests.servers.services import service_environment

_SERVE_AND_STOP = """
import asyncio, os, signal, sys
from backend.app import serve
from backend.settings import Settings
from shared.environment import read_settings

async def serve_and_stop():
    # the handler stands before the start first waits for anything
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
    await serve(read_settings(Settings, os.environ))

asyncio.run(serve_and_stop())
print(*sys.modules)
"""


def modules_of_a_backend(directory: Path, chat_shell_url: str) -> set[str]:
    """Start a backend on SQLite with events in its memory, stop it, and return what it had imported."""
    settings = {
        "BACKEND_PORT": "0",
        "BACKEND_CHAT_SHELL_URL": chat_shell_url,
        "BACKEND_ADMIN_KEY": "admin-key-of-the-test",
        "BACKEND_SECRET": "secret-of-the-test",
        "BACKEND_DATABASE_URL": f"sqlite+aiosqlite:///{directory}/ballast.db",
        "SERVICE_TOKEN": "service-token-of-the-test",
    }
    done = subprocess.run(
        [sys.executable, "-c", _SERVE_AND_STOP],
        env=service_environment(settings),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_backend_imports_what_its_settings_choose(tmp_path: Path):
    never = {"redis", "asyncpg", "alembic", "pypdf", "docx", "pptx", "openpyxl", "mcp", "mcp_types"}
    over_http = modules_of_a_backend(tmp_path, "http://127.0.0.1:1")
    assert over_http & {*never, "grpc", "google.protobuf"} == set()
    assert "backend.turns.chat_shell.http_client" in over_http
    over_grpc = modules_of_a_backend(tmp_path, "grpc://127.0.0.1:1")
    assert over_grpc & {*never, "aiohttp"} == set()
    assert "backend.turns.chat_shell.grpc_client" in over_grpc
