"""A foreign identity provider, and a backend whose page people sign in to by it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.e2e.pair import ADMIN_KEY, SECRET, SERVICE_TOKEN
from tests.servers.ports import free_port
from tests.servers.services import Launch, RunningService

CLIENT_ID = "ballast-page"


def start_provider(launch: Launch, directory: Path, *users: Mapping[str, object]) -> str:
    """Start a provider that knows users with these claims, and return its issuer."""
    port = free_port()
    issuer = f"http://127.0.0.1:{port}"
    known = [part for user in users for part in ("--user-claims", json.dumps(user))]
    directory.mkdir(parents=True, exist_ok=True)
    arguments = ("--port", str(port), "--require-nonce", "true", *known)
    launch(
        "oidc_provider_mock",
        *arguments,
        settings={"AUTHLIB_INSECURE_TRANSPORT": "1"},
        directory=directory,
        ready_url=f"{issuer}/jwks",
    ).wait_ready()
    return issuer


class SignInBackend(NamedTuple):
    """A backend with a page to sign in to."""

    service: RunningService
    url: str


def start_backend(launch: Launch, directory: Path, issuer: str, port: int | None = None) -> SignInBackend:
    """Start a backend with nobody behind it; with the port of another one it takes its place."""
    port, nobody = port or free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    directory.mkdir(parents=True, exist_ok=True)
    settings = {
        "BACKEND_PORT": str(port),
        "BACKEND_CHAT_SHELL_URL": f"grpc://127.0.0.1:{nobody}",
        "BACKEND_ADMIN_KEY": ADMIN_KEY,
        "BACKEND_SECRET": SECRET,
        "SERVICE_TOKEN": SERVICE_TOKEN,
        "BACKEND_JWT_ISSUER": issuer,
        "BACKEND_JWT_AUDIENCE": "ballast",
        "BACKEND_JWT_JWKS_URL": f"{issuer}/jwks",
        "BACKEND_JWT_ROLES_CLAIM": "roles",
        "BACKEND_JWT_ADMIN_ROLE": "root",
        "BACKEND_SIGN_IN_CLIENT_ID": CLIENT_ID,
        "BACKEND_SIGN_IN_CLIENT_SECRET": "secret-of-the-page",
        "BACKEND_SIGN_IN_URL": url,
    }
    service = launch("backend", settings=settings, directory=directory, ready_url=f"{url}/readyz")
    service.wait_ready()
    return SignInBackend(service, url)
