"""Build chat_shell from its parts and serve it; the only module that imports all of them."""

import asyncio
import random
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import aiohttp
import structlog

from chat_shell.foundation.services.admission import Admission
from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.foundation.telemetry.messages import watch_messages
from chat_shell.knowledge.http.backend import BackendKnowledge
from chat_shell.knowledge.services.knowledge_tools import SafeSummaries, build_knowledge_tools
from chat_shell.knowledge.telemetry.sealed_room import LoggingRoomObserver
from chat_shell.models.configured.directory import ConfiguredModels, build_models
from chat_shell.models.configured.entries import ModelEntry
from chat_shell.models.telemetry.calls import count_retry
from chat_shell.models.transport.streaming import open_session
from chat_shell.reaching import read_certificates, read_codebook, read_model_entries
from chat_shell.sealed.backend_wire import HttpSealedBackend
from chat_shell.sealed.gate import CodeGate
from chat_shell.sealed.room import LatencyPadding, RoomTimes, SealedRoom
from chat_shell.sealed.secondary_model import ChatCompletionsSecondary, SecondaryEndpoint, SecondaryModel
from chat_shell.sealed.summary_prompt import new_token
from chat_shell.sealed.summary_writer import CanaryCircuit, SummaryWriter
from chat_shell.servers.grpc.server import GrpcServer, create_grpc_server
from chat_shell.servers.http.app import create_admin_app, create_http_app
from chat_shell.settings import Settings
from chat_shell.tools.chosen import reach_servers
from chat_shell.tools.configured.tools_file import ToolsFile, ToolsFileError, read_tools_file
from chat_shell.tools.ports.tools import Tool, ToolProvider
from chat_shell.tools.services.served_calls import ServerCalls, ToolServerCatalogue
from chat_shell.tools.services.skills import ReadSkill
from chat_shell.tools.skill_folders.skill_folder import SkillFolder, SkillsError
from chat_shell.tools.telemetry.observer import LoggingToolServers
from chat_shell.turns.domain.reminders import reminder_of_call
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.run_turn import RunTurn, TurnDefaults
from chat_shell.turns.services.single_tools import SingleTools
from chat_shell.turns.services.turn_service import TurnService
from chat_shell.turns.services.turn_toolbox import TurnToolbox
from chat_shell.turns.telemetry.observer import LoggingTurnObserver
from shared.certificates import Certificates
from shared.clock import Clock, SystemClock
from shared.environment import WrongSetting
from shared.http_server.connection import ConnectionRules
from shared.http_server.server import HttpServer, build_server, stop_event, while_serving
from shared.http_server.timing import ReadLimits
from shared.http_server.tls_listener import tls_listener
from shared.listening import listen_as_set
from shared.loop_meter import LoopMeter
from shared.memory import look_for_cycles_rarely
from shared.models.served_tools import SKILLS_SERVER
from shared.retries import RetryPolicy
from shared.shutdown_bound import CLOSING_SECONDS, ShutdownBound, StillRunning
from shared.tracing import request_tracing

log = structlog.get_logger("chat_shell")

GRPC_GRACE_SECONDS = 5.0
IDLE_CONNECTIONS = 16_384
"""Backends keep a connection for each turn of a burst; a request that meets one as it is closed would be lost."""

TOOL_TIMEOUT_SECONDS = 30.0
TOOL_GRACE_SECONDS = 5.0


async def serve(settings: Settings, environ: Mapping[str, str]) -> None:
    """Serve gRPC and HTTP until SIGTERM or SIGINT; then refuse new turns, let the running ones end, and return.

    Raises:
        WrongSetting: the list of models, the file of findings or an address cannot be used.
    """
    async with AsyncExitStack() as stack:
        entries = read_model_entries(settings, environ)
        models = _models(settings, entries, await stack.enter_async_context(open_session()))
        certificates = read_certificates(settings)
        connector = aiohttp.TCPConnector(ssl=certificates.for_client())
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                middlewares=request_tracing(),
            )
        )
        admission = Admission()
        clock = SystemClock()
        room_times = RoomTimes(settings.safe_summary_timeout_seconds)
        # A session of its own, so that a secondary model that hangs delays no retrieval.
        secondary_session = await stack.enter_async_context(open_session())
        secondary = ChatCompletionsSecondary(secondary_session, secondary_endpoint(settings, entries))
        room = _build_sealed_room(settings, secondary, session, room_times)
        knowledge = BackendKnowledge(session, settings.backend_url, settings.service_token.get_secret_value())
        served, providers = await open_served_tools(settings, environ, clock)
        tools = build_knowledge_tools(knowledge, room)
        toolbox = build_toolbox(tools, clock, tool_timeout_seconds(room_times), providers)
        open_tools = partial(TurnToolbox, toolbox, settings.max_tool_result_tokens)
        defaults = TurnDefaults(RetryPolicy(jitter=random.random, on_retry=count_retry), settings.max_model_calls)
        run = RunTurn(models, open_tools, reminder_of_call, clock, LoggingTurnObserver(), defaults)
        turns = TurnService(run, SingleTools(toolbox, models, served.list_offered), models.cards, clock, admission)
        look_for_cycles_rarely()
        await _serve_until_stopped(settings, certificates, turns, admission, served)


async def open_served_tools(
    settings: Settings, environ: Mapping[str, str], clock: Clock
) -> tuple[ToolServerCatalogue, Mapping[str, ToolProvider]]:
    """Return what the operator's tools file names: what is offered, and what runs it, by the names of servers.

    Raises:
        WrongSetting: the file is wrong, or a skill is.
    """
    observer = LoggingToolServers()
    try:
        listed = read_tools_file(settings.tools_file, environ) if settings.tools_file is not None else ToolsFile()
        wanted = listed.skills
        skills = SkillFolder(wanted.folder, accepts_restricted=wanted.accepts_restricted) if wanted else None
    except (ToolsFileError, SkillsError) as error:
        raise WrongSetting(f"CHAT_SHELL_TOOLS_FILE: {error}") from None
    servers = await reach_servers(listed.servers, settings.proxy)
    providers: dict[str, ToolProvider] = {
        entry.name: ServerCalls(entry, server, clock, observer) for entry, server in servers
    }
    if skills is not None and wanted is not None:
        providers[SKILLS_SERVER] = ReadSkill(skills.read, accepts_restricted=wanted.accepts_restricted)
    return ToolServerCatalogue(servers, skills.cards if skills is not None else (), observer), providers


def _models(settings: Settings, entries: tuple[ModelEntry, ...], session: aiohttp.ClientSession) -> ConfiguredModels:
    if settings.log_llm_requests:
        log.warning("LLM requests and responses are logged whole: users' words and knowledge stand in the log")
    return build_models(
        entries,
        session,
        SystemClock(),
        idle_timeout_seconds=settings.model_idle_timeout_seconds,
        logs_requests=settings.log_llm_requests,
        proxy=settings.proxy,
    )


def secondary_endpoint(settings: Settings, entries: tuple[ModelEntry, ...]) -> SecondaryEndpoint:
    """Return the name, address and key of the secondary model.

    What the operator has not set is taken from the main model, the first of the entries. The main model's key is
    never sent to another address than the main model's own.
    """
    main = entries[0]
    address = settings.safe_summary_base_url
    is_main = address in (None, main.base_url)
    return SecondaryEndpoint(
        model=settings.safe_summary_model or main.model or main.name,
        base_url=address or main.base_url,
        api_key=settings.safe_summary_api_key or (main.api_key if is_main else None),
        proxy=settings.proxy.for_address(address or main.base_url),
        is_salted=settings.safe_summary_cache_salt or (is_main and main.cache_salt is not None),
    )


def _build_sealed_room(
    settings: Settings, secondary: SecondaryModel, session: aiohttp.ClientSession, times: RoomTimes
) -> SafeSummaries:
    clock = SystemClock()
    backend = HttpSealedBackend(session, settings.backend_url, settings.service_token.get_secret_value())
    circuit, observer = CanaryCircuit(settings.canary_limit, clock.now), LoggingRoomObserver(settings.log_llm_requests)
    writer = SummaryWriter(secondary, CodeGate(), circuit, observer, new_token, read_codebook(settings))
    return SealedRoom(backend, writer, observer, clock.now, LatencyPadding(asyncio.sleep), times)


def tool_timeout_seconds(room_times: RoomTimes) -> float:
    """Return how long a tool of our own may take: longer than a safe summary and its recording."""
    return max(TOOL_TIMEOUT_SECONDS, room_times.longest_seconds + TOOL_GRACE_SECONDS)


def build_toolbox(
    tools: Sequence[Tool], clock: Clock, timeout_seconds: float, providers: Mapping[str, ToolProvider]
) -> Toolbox:
    """Create what offers and runs tools.

    Raises:
        WrongSetting: two tools have the same name, or a knowledge tool is missing.
    """
    try:
        return Toolbox(tools, clock, LoggingTurnObserver(), timeout_seconds, providers)
    except ValueError as error:
        raise WrongSetting(f"tools: {error}") from None


async def _serve_until_stopped(
    settings: Settings,
    certificates: Certificates,
    turns: TurnService,
    admission: Admission,
    served: ToolServerCatalogue,
) -> None:
    stop = stop_event()
    grpc, server = _build_servers(settings, turns, certificates)
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(_listen(settings, settings.http_port, "CHAT_SHELL_HTTP_PORT"))
        stack.enter_context(LoopMeter())
        await stack.enter_async_context(_serve_admin(settings, turns))
        await grpc.start()
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            asking = group.create_task(served.run())
            log.info("Ready", grpc_port=grpc.port, http_port=listening.getsockname()[1])
            await stop.wait()
            log.info("Draining", running_turns=admission.running)
            admission.close()
            server.send_clients_away()
            await grpc.announce_drain()
            await admission.wait_until_idle()
            ShutdownBound(_log_hanging).begin(CLOSING_SECONDS)
            await grpc.stop(GRPC_GRACE_SECONDS)
            server.should_exit = True
            asking.cancel()


def _log_hanging(running: StillRunning) -> None:
    log.error("Shutdown takes too long", tasks=running.tasks, threads=running.threads)


def _build_servers(settings: Settings, turns: TurnService, certificates: Certificates) -> tuple[GrpcServer, HttpServer]:
    shown = certificates if certificates.files.can_serve else None
    token = settings.service_token.get_secret_value()
    address = f"{settings.host}:{settings.grpc_port}"
    bounds = MessageBounds(settings.max_message_bytes, settings.max_messages_bytes)
    watch_messages(bounds)
    # Tried with a plain socket first, because gRPC prints a message of its own, outside of our log format.
    _listen(settings, settings.grpc_port, "CHAT_SHELL_GRPC_PORT").close()
    try:
        grpc = create_grpc_server(turns, token, bounds, address=address, certificates=shown)
    except RuntimeError:
        raise WrongSetting(f"CHAT_SHELL_GRPC_PORT: cannot listen on {address}") from None
    has_metrics, needs_certificate = settings.admin_port is None, certificates.files.are_mutual
    app = create_http_app(turns, token, bounds, has_metrics=has_metrics, needs_certificate=needs_certificate)
    rules = ConnectionRules(ReadLimits(unfinished_heads=IDLE_CONNECTIONS))
    return grpc, build_server(app, rules, tls_listener(certificates))


@asynccontextmanager
async def _serve_admin(settings: Settings, turns: TurnService) -> AsyncGenerator[None]:
    """Serve health and metrics on a port of their own while the block runs, where one is set."""
    if settings.admin_port is None:
        yield
        return
    with _listen(settings, settings.admin_port, "CHAT_SHELL_ADMIN_PORT") as listening:
        async with while_serving(build_server(create_admin_app(turns)), listening):
            log.info("Admin port", port=listening.getsockname()[1])
            yield


def _listen(settings: Settings, port: int, setting: str) -> socket.socket:
    return listen_as_set(settings.host, port, host_setting="CHAT_SHELL_HOST", port_setting=setting)
