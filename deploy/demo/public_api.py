"""A client of the backend's public HTTP API for the demo."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import cast

_TIMEOUT_SECONDS = 30
# proxies of the environment are not for the loopback address
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

Answer = dict[str, object]


class Refused(RuntimeError):
    """The backend answered with an error; `status` is its number."""

    def __init__(self, status: int, text: str):
        super().__init__(f"the backend answered {status}: {text}")
        self.status = status


class PublicApi:
    """A caller with one key."""

    def __init__(self, base_url: str, key: str):
        self._base_url = base_url
        self._key = key

    def call(self, method: str, path: str, body: Answer | bytes | None = None) -> Answer:
        """Call it and return its answer, `{}` when it has no body. A dict is sent as JSON, bytes as Markdown.

        Raises:
            Refused: an answer of 400 and above.
        """
        sent = json.dumps(body).encode() if isinstance(body, dict) else body
        content_type = "text/markdown; charset=utf-8" if isinstance(body, bytes) else "application/json"
        request = urllib.request.Request(
            self._base_url + path,
            data=sent,
            method=method,
            headers={"Authorization": f"Bearer {self._key}", "Content-Type": content_type},
        )
        try:
            with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, error.read().decode(errors="replace")) from None
        return cast(Answer, json.loads(text)) if text else {}

    def accepts_the_key(self) -> bool:
        """Whether the key is valid here."""
        try:
            self.call("GET", "/v1/models")
        except Refused as refusal:
            if refusal.status == 401:
                return False
            raise
        return True


def quote(name: str) -> str:
    """Return a name as one segment of a path."""
    return urllib.parse.quote(name, safe="")


def status_of(url: str) -> int:
    """Return the status of a GET, 0 when nobody answers."""
    try:
        with opener.open(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, http.client.HTTPException):
        return 0
