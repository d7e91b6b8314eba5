"""Build chat_shell from its parts and serve it; the only module that imports all of them."""

import asyncio
import random
import secrets
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import aiohttp
import structlog

from chat_shell.doors.grpc.server import GrpcDoor, create_grpc_server
from chat_shell.doors.http.app import create_http_app
from chat_shell.doors.http.listening import HttpServer, http_server, listening_socket
from chat_shell.foundation.services.admission import Admission
from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.foundation.telemetry.loop import LoopMeter
from chat_shell.knowledge.http.backend import BackendKnowledge
from chat_shell.knowledge.services.knowledge_tools import knowledge_tools
from chat_shell.knowledge.services.search_tool import SafeSummaries
from chat_shell.knowledge.telemetry.sealed_room import LoggingRoomObserver
from chat_shell.models.configured.directory import ConfiguredModels, ModelOptions, configured_models
from chat_shell.models.configured.entries import ModelConfigurationError, ModelEntry, read_models_file
from chat_shell.models.ports import ModelDirectory
from chat_shell.models.transport.session import open_session
from chat_shell.sealed.backend_wire import HttpSealedBackend
from chat_shell.sealed.circuit import CanaryCircuit
from chat_shell.sealed.gate import GATE_VERSION, judge, prepare
from chat_shell.sealed.room import SealedRoom
from chat_shell.sealed.room_parts import RoomParts, RoomTimes
from chat_shell.sealed.secondary_model import ChatCompletionsSecondary, SecondaryEndpoint, SecondaryModel
from chat_shell.sealed.summary_prompt import new_token
from chat_shell.sealed.usual_time import UsualTime
from chat_shell.sealed.verdicts import Gate
from chat_shell.settings import Settings
from chat_shell.tools.ports import Tool
from chat_shell.turns.services.model_answer import RetryPolicy
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.run_turn import RunTurn, TurnDefaults
from chat_shell.turns.services.single_tools import SingleTools
from chat_shell.turns.services.turn_service import TurnService
from chat_shell.turns.telemetry.observer import LoggingTurnObserver
from shared.clock import Clock, SystemClock
from shared.environment import WrongSetting
from shared.garbage import look_for_cycles_rarely
from shared.shutdown_bound import CLOSING_SECONDS, ShutdownBound, StillRunning

log = structlog.get_logger("chat_shell")

GRPC_GRACE_SECONDS = 5.0
TOOL_TIMEOUT_SECONDS = 30.0
TOOL_GRACE_SECONDS = 5.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def serve(settings: Settings, environ: Mapping[str, str]) -> None:
    """Serve gRPC and HTTP until SIGTERM or SIGINT; then refuse new turns, let the running ones end, and return.

    Raises:
        WrongSetting: the list of models or an address cannot be used.
    """
    async with AsyncExitStack() as stack:
        entries = _model_entries(settings, environ)
        models = _models(settings, entries, await stack.enter_async_context(open_session()))
        session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()))
        admission = Admission()
        clock = SystemClock()
        room_times = RoomTimes(settings.safe_summary_timeout_seconds)
        # A session of its own, so that a secondary model that hangs delays no retrieval.
        secondary_session = await stack.enter_async_context(open_session())
        secondary = ChatCompletionsSecondary(secondary_session, secondary_endpoint(settings, entries))
        room = _sealed_room(settings, secondary, session, room_times)
        knowledge = BackendKnowledge(session, settings.backend_url, settings.service_token.get_secret_value())
        tools, defaults = knowledge_tools(knowledge, room), turn_defaults(settings, room_times)
        run = turn_runner(models, tools, clock, defaults)
        toolbox = Toolbox(tools, clock, LoggingTurnObserver(), defaults.tool_timeout_seconds)
        turns = TurnService(run, SingleTools(toolbox, models), models.cards, clock, admission)
        look_for_cycles_rarely()
        await _serve_doors(settings, turns, admission)


def _models(settings: Settings, entries: tuple[ModelEntry, ...], session: aiohttp.ClientSession) -> ConfiguredModels:
    options = ModelOptions(
        idle_timeout_seconds=settings.model_idle_timeout_seconds, log_requests=settings.log_llm_requests
    )
    if settings.log_llm_requests:
        log.warning("LLM requests and responses are logged whole: users' words and knowledge stand in the log")
    return configured_models(entries, session, SystemClock(), options)


def _model_entries(settings: Settings, environ: Mapping[str, str]) -> tuple[ModelEntry, ...]:
    single = ModelEntry(
        name=settings.model,
        api=settings.model_api.value,
        base_url=settings.model_base_url,
        api_key=settings.model_api_key,
    )
    if settings.models_file is None:
        return (single,)
    try:
        listed = read_models_file(settings.models_file, environ)
    except ModelConfigurationError as error:
        raise WrongSetting(f"CHAT_SHELL_MODELS_FILE: {error}") from None
    return (single, *listed) if environ.get("CHAT_SHELL_MODEL") else listed


def secondary_endpoint(settings: Settings, entries: tuple[ModelEntry, ...]) -> SecondaryEndpoint:
    """Return the name, address and key of the secondary model.

    What the operator has not set is taken from the main model, the first of the entries. The main model's key is
    never sent to another address than the main model's own.
    """
    main = entries[0]
    address = settings.safe_summary_base_url
    main_key = main.api_key if address in (None, main.base_url) else None
    return SecondaryEndpoint(
        model=settings.safe_summary_model or main.model or main.name,
        base_url=address or main.base_url,
        api_key=settings.safe_summary_api_key or main_key,
    )


def _sealed_room(
    settings: Settings, secondary: SecondaryModel, session: aiohttp.ClientSession, times: RoomTimes
) -> SafeSummaries:
    clock = SystemClock()
    parts = RoomParts(
        backend=HttpSealedBackend(session, settings.backend_url, settings.service_token.get_secret_value()),
        model=secondary,
        gate=Gate(GATE_VERSION, prepare, judge),
        circuit=CanaryCircuit(settings.canary_limit, clock.now),
        observer=LoggingRoomObserver(settings.log_llm_requests),
        now=clock.now,
        new_token=new_token,
        usual_time=UsualTime(asyncio.sleep, secrets.choice),
    )
    return SealedRoom(parts, times)


def turn_defaults(settings: Settings, room_times: RoomTimes) -> TurnDefaults:
    """Return the defaults of turns; tools have more time than a safe summary and its recording may take."""
    return TurnDefaults(
        RetryPolicy(jitter=random.random),
        max_model_calls=settings.max_model_calls,
        tool_timeout_seconds=max(TOOL_TIMEOUT_SECONDS, room_times.longest_seconds + TOOL_GRACE_SECONDS),
    )


def turn_runner(models: ModelDirectory, tools: Sequence[Tool], clock: Clock, defaults: TurnDefaults) -> RunTurn:
    """Create the use case that runs turns.

    Raises:
        WrongSetting: two tools have the same name, or a knowledge tool is missing.
    """
    try:
        return RunTurn(models, tools, clock, LoggingTurnObserver(), defaults)
    except ValueError as error:
        raise WrongSetting(f"tools: {error}") from None


async def _serve_doors(settings: Settings, turns: TurnService, admission: Admission) -> None:
    stop = _stop_event()
    grpc_door, server = _doors(settings, turns)
    with _listening(settings) as listening, LoopMeter():
        await grpc_door.start()
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            log.info("Ready", grpc_port=grpc_door.port, http_port=listening.getsockname()[1])
            await stop.wait()
            log.info("Draining", running_turns=admission.running)
            admission.close()
            await grpc_door.announce_drain()
            await admission.wait_until_idle()
            ShutdownBound(_log_hanging).begin(CLOSING_SECONDS)
            await grpc_door.stop(GRPC_GRACE_SECONDS)
            server.should_exit = True


def _log_hanging(running: StillRunning) -> None:
    log.error("Shutdown takes too long", tasks=running.tasks, threads=running.threads)


def _doors(settings: Settings, turns: TurnService) -> tuple[GrpcDoor, HttpServer]:
    token = settings.service_token.get_secret_value()
    address = f"{settings.host}:{settings.grpc_port}"
    bounds = MessageBounds(settings.max_message_bytes, settings.max_messages_bytes)
    try:
        # Tried with a plain socket first, because gRPC prints a message of its own, outside of our log format.
        listening_socket(settings.host, settings.grpc_port).close()
        grpc_door = create_grpc_server(turns, token, bounds, address=address)
    except (OSError, RuntimeError):
        raise WrongSetting(f"CHAT_SHELL_GRPC_PORT: cannot listen on {address}") from None
    return grpc_door, http_server(create_http_app(turns, token, bounds))


def _listening(settings: Settings) -> socket.socket:
    try:
        return listening_socket(settings.host, settings.http_port)
    except OSError as error:
        place = f"{settings.host}:{settings.http_port}"
        raise WrongSetting(f"CHAT_SHELL_HTTP_PORT: cannot listen on {place} ({error.strerror})") from None


def _stop_event() -> asyncio.Event:
    """Return an event that the stop signals set; called before anything is served, so that no signal is missed."""
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
