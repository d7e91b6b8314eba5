"""The diagnosis of a running backend, over its public API alone."""

from collections.abc import AsyncGenerator
from email.utils import parsedate_to_datetime

import httpx2

from cli.advice import advice_on
from cli.answers import Answer, json_object, objects_at, part_at, text_at
from cli.api import Api
from cli.asking import HeardAnswer, fault_of, kinds_of
from cli.failures import CommandFailed, RequestRefused
from shared.checked_parts import CheckedPart
from shared.clock import Clock

MAX_SKEW_SECONDS = 30
_HEADER_SECONDS = 2  # the header tells whole seconds, and an answer takes a while
_QUESTION: Answer = {"input": "Answer with the word ok.", "store": False, "stream": True}
_LOG_MEND = "see chat_shell's log"
_RUNNER_MEND = "start chat_shell, or correct BACKEND_CHAT_SHELL_URL"
_TOKEN_MEND = "give backend and chat_shell the same SERVICE_TOKEN, and start both again"  # noqa: S105 -- no token
_EMBEDDER_MEND = "start the embedder, or correct BACKEND_EMBEDDING_*; until then searches are by words"


class Diagnosis:
    """Looks at a backend from outside, part by part; what depends on a broken part is not looked at."""

    def __init__(self, api: Api, clock: Clock, *, asks_model: bool):
        self._api = api
        self._clock = clock
        self._asks_model = asks_model

    async def parts(self) -> AsyncGenerator[CheckedPart]:
        """Yield what is found."""
        alive = await self._alive()
        yield alive
        if not alive.is_well:
            return
        yield await self._clocks()
        async for part in self._components():
            yield part
        key = await self._key()
        yield key
        if not key.is_well:
            return
        runner = await self._runner()
        yield runner
        if runner.is_well and self._asks_model:
            yield await self._model()
        yield await self._embedder()

    async def _alive(self) -> CheckedPart:
        try:
            answer = await self._api.raw("/healthz")
        except CommandFailed as failed:
            return CheckedPart("backend", False, failed.message, failed.mend)
        if answer.status_code == 200 and text_at(_body_of(answer), "status") == "ok":
            return CheckedPart("backend", True, "It answers.")
        found = f"Something answers {answer.status_code} there that is no backend of Ballast."
        return CheckedPart("backend", False, found, "another program has this port: set BALLAST_URL to the backend's")

    async def _clocks(self) -> CheckedPart:
        sent = (await self._api.raw("/healthz")).headers.get("date", "")
        try:
            apart_seconds = abs((self._clock.now() - parsedate_to_datetime(sent)).total_seconds())
        except (TypeError, ValueError):
            return CheckedPart("clock", True, "The backend does not tell its time.")
        found = "have the same time" if apart_seconds <= _HEADER_SECONDS else f"differ by {apart_seconds:.0f} s"
        mend = "let both set their clocks by NTP: keys, tokens and tickets expire at the wrong time"
        return CheckedPart("clock", apart_seconds <= MAX_SKEW_SECONDS, f"This machine and the backend {found}.", mend)

    async def _components(self) -> AsyncGenerator[CheckedPart]:
        components = part_at(_body_of(await self._api.raw("/readyz")), "components")
        mends = {
            "database": "see that PostgreSQL runs and takes writes, or that the disk of SQLite's file is not full",
            "event_store": "see that Redis runs, is no replica, and is not full (BACKEND_REDIS_URL)",
        }
        for name, mend in mends.items():
            state = text_at(components, name) or "not told"
            yield CheckedPart(name.replace("_", " "), state in ("ok", "not told"), f"It is {state}.", mend)

    async def _key(self) -> CheckedPart:
        try:
            await self._api.call("GET", "/v1/knowledge_bases", parameters={"limit": 1})
        except CommandFailed as failed:
            return CheckedPart("key", False, failed.message, failed.mend)
        return CheckedPart("key", True, "It is valid.")

    async def _runner(self) -> CheckedPart:
        try:
            models = objects_at(await self._api.call("GET", "/v1/models"), "data")
        except CommandFailed as failed:
            mend = _TOKEN_MEND if "token" in failed.message else _RUNNER_MEND
            return CheckedPart("chat_shell", False, failed.message, mend)
        names = ", ".join(text_at(model, "id") for model in models)
        return CheckedPart("chat_shell", bool(models), f"It offers {names or 'no model'}.", _RUNNER_MEND)

    async def _model(self) -> CheckedPart:
        """Ask for a stream: its error names the class of what went wrong at the model."""
        heard = HeardAnswer()
        try:
            async for event in self._api.events("POST", "/v1/responses", _QUESTION):
                heard.take(event)
        except RequestRefused as refused:
            return CheckedPart("model", False, refused.message, advice_on(refused.kinds) or _LOG_MEND)
        except CommandFailed as failed:
            return CheckedPart("model", False, failed.message, failed.mend)
        if not (fault := fault_of(heard)):
            return CheckedPart("model", True, "It answers.")
        return CheckedPart("model", False, fault, advice_on(kinds_of(heard)) or _LOG_MEND)

    async def _embedder(self) -> CheckedPart:
        """Ask for a vector under a name that no embedder has; the refusal tells its name, or that there is none."""
        try:
            await self._api.call("POST", "/v1/embeddings", {"input": "ballast", "model": "ballast-doctor"})
        except RequestRefused as refused:
            return await self._check_embedder(refused.message.rpartition("; use '")[2].removesuffix("'."))
        except CommandFailed as failed:
            return CheckedPart("embedder", False, failed.message, failed.mend)
        return CheckedPart("embedder", True, "It makes vectors.")

    async def _check_embedder(self, name: str) -> CheckedPart:
        if " " in name:
            return CheckedPart("embedder", True, "None is set: searches are by words.")
        try:
            await self._api.call("POST", "/v1/embeddings", {"input": "ballast", "model": name})
        except CommandFailed as failed:
            return CheckedPart("embedder", False, failed.message, _EMBEDDER_MEND)
        return CheckedPart("embedder", True, f"{name} makes vectors.")


def _body_of(answer: httpx2.Response) -> dict[str, object]:
    try:
        return json_object(answer.json())
    except ValueError:
        return {}
