"""Both services are rolled twice, and their certificates exchanged, under sixty live streams: none fails, none is cut.

`make rehearsal` runs it; the notes of a run are printed.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import httpx2

from tests.e2e.pair import ADMIN_KEY, MODEL, SECRET, SERVICE_TOKEN, start_model
from tests.e2e.turns import Body, events_of, text_of
from tests.fakes.model_server import FakeModelControl, Reply
from tests.rehearsal.identity import ExchangedCertificates
from tests.rehearsal.pods import Deployment
from tests.rehearsal.service_proxy import ServiceProxy
from tests.servers.certificates import Authority, MountedSecret
from tests.servers.services import Launch

STREAMS = 60
PODS, ROLLS = 2, 2
SAID = tuple(f"word{number} " for number in range(200))
PAUSE_SECONDS = 0.05


async def test_both_services_are_rolled_and_their_certificates_exchanged_under_live_streams(
    launch: Launch, tmp_path: Path, empty_postgres_url: str, valkey_url: str
) -> None:
    authority = Authority()
    secrets = {
        prefix: MountedSecret(tmp_path / prefix, authority.issue(), authority.certificate)
        for prefix in ("BACKEND", "CHAT_SHELL")
    }
    certificates = ExchangedCertificates(secrets, authority)
    model, model_url = start_model(launch, tmp_path)
    await asyncio.to_thread(model.wait_ready)
    async with AsyncExitStack() as stack:
        control = await stack.enter_async_context(FakeModelControl(model_url))
        await control.script(Reply(text=SAID, pause_seconds=PAUSE_SECONDS, repeat=True))
        front, grpc, back = [await stack.enter_async_context(ServiceProxy()) for _ in range(3)]
        shared = {"SERVICE_TOKEN": SERVICE_TOKEN}
        of_shells = {
            **secrets["CHAT_SHELL"].settings("CHAT_SHELL"),
            "CHAT_SHELL_BACKEND_URL": f"https://127.0.0.1:{front.port}",
            "CHAT_SHELL_MODEL": MODEL,
            "CHAT_SHELL_MODEL_BASE_URL": model_url,
        }
        of_backends = {
            **secrets["BACKEND"].settings("BACKEND"),
            "BACKEND_CHAT_SHELL_URL": f"grpcs://127.0.0.1:{grpc.port}",
            "BACKEND_DATABASE_URL": empty_postgres_url,
            "BACKEND_REDIS_URL": valkey_url,
            "BACKEND_ADMIN_KEY": ADMIN_KEY,
            "BACKEND_SECRET": SECRET,
        }
        ports = {"CHAT_SHELL_HTTP_PORT": back, "CHAT_SHELL_GRPC_PORT": grpc}
        shells = Deployment("chat_shell", launch, tmp_path, shared | of_shells, ports)
        backends = Deployment("backend", launch, tmp_path, shared | of_backends, {"BACKEND_PORT": front})
        for deployment in (shells, backends):
            for _ in range(PODS):
                await deployment.scale_up()
        ends = await streams_during(front, (shells, backends), certificates)
    print(f"\nstreams by their end: {dict(ends)}")  # noqa: T201 -- what the rehearsal found
    assert set(ends) == {"completed"}
    assert ends["completed"] >= 2 * STREAMS
    assert shells.exit_codes == backends.exit_codes == [0] * (PODS * ROLLS)


async def streams_during(
    front: ServiceProxy, deployments: tuple[Deployment, ...], certificates: ExchangedCertificates
) -> Counter[str]:
    """Keep streams running while each service is rolled, and certificates exchanged between; return how they ended."""
    url = f"https://127.0.0.1:{front.port}"
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    ends: Counter[str] = Counter()
    is_over = False

    async def stream(kept_connections: int) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=kept_connections)
        trusted = certificates.for_users()
        async with httpx2.AsyncClient(
            base_url=url, headers=headers, timeout=120, trust_env=False, limits=limits, verify=trusted
        ) as client:
            while not is_over:
                ends[await end_of_stream(client)] += 1

    async with asyncio.TaskGroup() as group:
        for number in range(STREAMS):
            group.create_task(stream(number % 2))  # every second client keeps its connection
        for number in range(ROLLS):
            if number:
                await certificates.exchange()
            for deployment in deployments:
                await deployment.roll()
        is_over = True
    return ends


async def end_of_stream(client: httpx2.AsyncClient) -> str:
    """Take one streamed turn; return how it ended, "completed" where every word came, once and in order.

    A server may close an idle connection in the moment in which a request is sent on it. Clients that keep connections
    send such a request again, as this one does, and its key makes sure that it runs once.
    """
    headers = {"Idempotency-Key": uuid4().hex}
    body: Body = {"input": "Count", "stream": True, "tools": []}
    try:
        try:
            answer = await client.post("/v1/responses", json=body, headers=headers)
        except httpx2.RemoteProtocolError:
            answer = await client.post("/v1/responses", json=body, headers=headers)
    except httpx2.HTTPError as error:
        return f"{type(error).__name__}: {error}"
    if answer.status_code != 200:
        return f"{answer.status_code}: {answer.text[:200]}"
    *_, last = events_of(answer.text)
    response = last.get("response", {})
    is_whole = response.get("status") == "completed" and text_of(response) == "".join(SAID)
    return "completed" if is_whole else f"{last['type']}: {response.get('error') or response.get('incomplete_details')}"
