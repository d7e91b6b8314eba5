"""People sign in to the page of a real backend by a foreign identity provider."""

import json
from pathlib import Path

import httpx2

from tests.patience import PATIENCE_SECONDS
from tests.servers.identity_provider import start_backend, start_provider
from tests.servers.services import Launch

PAGE = {"x-ballast-page": "1"}


def sign_in(browser: httpx2.Client, url: str, subject: str) -> httpx2.Response:
    """Go to the provider, say there who one is, and come back."""
    sent = browser.get(f"{url}/sign-in")
    assert sent.status_code == 303
    return browser.post(sent.headers["location"], data={"sub": subject}, follow_redirects=False)


def test_a_session_survives_the_process_and_ends_where_it_is_ended(launch: Launch, tmp_path: Path) -> None:
    issuer = start_provider(launch, tmp_path, {"sub": "ada", "roles": ["root"]})
    with httpx2.Client(timeout=PATIENCE_SECONDS, trust_env=False) as browser:
        backend = start_backend(launch, tmp_path, issuer)
        back = sign_in(browser, backend.url, "ada")
        answer = browser.get(back.headers["location"])
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert browser.get(back.headers["location"]).status_code == 401
        assert browser.get(f"{backend.url}/session", headers=PAGE).json()["role"] == "admin"

        backend.service.kill()
        backend = start_backend(launch, tmp_path, issuer, int(backend.url.rpartition(":")[2]))
        assert browser.get(f"{backend.url}/v1/api_keys", headers=PAGE).status_code == 200
        assert browser.get(f"{backend.url}/v1/api_keys").status_code == 401
        ended = browser.delete(f"{backend.url}/session", headers=PAGE).json()
        assert ended["address"] == f"{issuer}/oauth2/end_session"
        assert browser.get(f"{backend.url}/v1/api_keys", headers=PAGE).status_code == 401
        lines = [json.loads(line) for line in backend.service.log().splitlines() if line.startswith("{")]
    assert {"Sessions ended"} <= {line["event"] for line in lines}


def test_who_is_denied_at_the_provider_is_told_so(launch: Launch, tmp_path: Path) -> None:
    issuer = start_provider(launch, tmp_path)
    with httpx2.Client(timeout=PATIENCE_SECONDS, trust_env=False) as browser:
        backend = start_backend(launch, tmp_path, issuer)
        sent = browser.get(f"{backend.url}/sign-in")
        back = browser.post(sent.headers["location"], data={"action": "deny"})
        refused = browser.get(back.headers["location"])
        assert refused.status_code == 401
        assert "You are not signed in" in refused.text
        assert "Sign-in refused" in backend.service.log()
