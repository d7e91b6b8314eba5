"""The backend, put together: the only module that knows every part of it."""

import asyncio
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import structlog

from backend.adapters.chat_shell.connect import connect_chat_shell
from backend.adapters.clock import SystemClock
from backend.adapters.documents.reader import LibraryDocumentReader
from backend.adapters.dynamic_blocks.entry_points import installed_blocks
from backend.adapters.http.app import create_app
from backend.adapters.http.listening import HttpServer, http_server, listening_socket
from backend.adapters.http.response_services import ResponseServices
from backend.adapters.http.services import HttpOptions, Services
from backend.adapters.memory.event_log import MemoryEventLog
from backend.adapters.memory.stop_signals import MemoryStopSignals
from backend.adapters.sql.api_keys import SqlApiKeyStore
from backend.adapters.sql.contact import meet
from backend.adapters.sql.conversations import SqlConversationStore
from backend.adapters.sql.database import Database, open_database
from backend.adapters.sql.knowledge.protected import SqlProtectedKnowledge
from backend.adapters.sql.knowledge.retrieval import SqlRetrieval
from backend.adapters.sql.knowledge.store import SqlKnowledgeStore
from backend.adapters.sql.migrate import migrate
from backend.adapters.sql.restricted.audit import SqlAuditTrail
from backend.adapters.sql.restricted.ledger import SqlRestrictedLedger
from backend.adapters.sql.turns import SqlTurnStore
from backend.adapters.telemetry.descriptions import LoggingDescriptionObserver
from backend.adapters.telemetry.observer import LoggingTurnObserver
from backend.adapters.telemetry.restricted import LoggingSafeSummaryObserver
from backend.adapters.telemetry.retrieval import TimedRetrieval
from backend.domain.restricted_budget import RestrictedLimits
from backend.ports.events import EventLog, StopSignals
from backend.ports.identity import Clock
from backend.ports.readiness import Presence
from backend.services.admission import Admission
from backend.services.api_keys import ApiKeys
from backend.services.authenticate import Authenticate
from backend.services.cancel_turn import CancelTurn
from backend.services.conversations import Conversations
from backend.services.follow_turn import FollowTurn
from backend.services.forget_searches import ForgetSearches
from backend.services.knowledge import KnowledgePorts, build_knowledge
from backend.services.model_catalogue import ModelCatalogue
from backend.services.outgoing_check import OutgoingCheck
from backend.services.read_prompts import ReadPrompts
from backend.services.read_responses import ReadResponses
from backend.services.readiness import Readiness
from backend.services.recover_turns import RecoverTurns
from backend.services.restricted import RestrictedPorts, build_restricted
from backend.services.run_turn import RunTurn
from backend.services.safe_descriptions import SafeDescriptions
from backend.services.start_turn import StartTurn, TurnSources
from backend.services.turn_assembly import TurnPolicy
from backend.services.turn_origins import TurnOrigins
from backend.services.turn_ports import TurnPorts
from backend.services.turn_registry import TurnRegistry
from backend.services.turn_scope import TurnScopes
from backend.services.withheld_turns import WithheldTurns
from backend.settings import ContextPolicy, Settings
from shared.environment import WrongSetting
from shared.errors import Unavailable
from shared.loading import load

log = structlog.get_logger("backend")

MAX_KNOWLEDGE_CALLS = 10
"""Calls of knowledge tools a turn."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Backend:
    """All use cases over their adapters."""

    services: Services
    recovery: RecoverTurns
    sweep: Callable[[], Awaitable[None]]
    forget_searches: ForgetSearches


class EventStore(NamedTuple):
    """Where events and signals go, and who watches it; nobody where it is in this process."""

    events: EventLog
    signals: StopSignals
    presence: Presence | None


async def migrate_database(settings: Settings) -> None:
    """Bring the database to the newest schema.

    Raises:
        WrongSetting: its address cannot be used.
    """
    database = _open_database(settings)
    try:
        await _meet_database(settings, database)
        await migrate(database)
    finally:
        await database.close()


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then refuse new turns, finish the running ones and return.

    Raises:
        WrongSetting: an address cannot be used: our own, the database's or that of Redis.
    """
    stop = _stop_event()
    if settings.embedding_base_url:
        log.warning("BACKEND_EMBEDDING_BASE_URL is set and not used yet: retrieval ranks by words alone")
    async with AsyncExitStack() as stack:
        database = _open_database(settings)
        stack.push_async_callback(database.close)
        await _meet_database(settings, database)
        await migrate(database)
        backend = await _build(settings, database, stack)
        await _ensure_admin_key(settings, backend.services.api_keys)
        await backend.recovery.at_start()
        options = HttpOptions(settings.service_token.get_secret_value(), settings.max_body_bytes)
        server = http_server(create_app(backend.services, options))
        await _serve_until(stop, backend, server, stack.enter_context(_listening(settings)))


async def _serve_until(stop: asyncio.Event, backend: Backend, server: HttpServer, listening: socket.socket) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listening]))
        background = [
            group.create_task(backend.recovery.keep_alive()),
            group.create_task(_sweep(backend)),
            group.create_task(backend.forget_searches.keep_forgetting()),
            group.create_task(backend.services.restricted.closing.keep_closing()),
        ]
        async with backend.services.responses.registry as registry:
            log.info("Ready", port=listening.getsockname()[1])
            await stop.wait()
            log.info("Draining", running_turns=registry.running_count)
            backend.services.admission.close()
        for task in background:
            task.cancel()
        server.should_exit = True


async def _sweep(backend: Backend) -> None:
    try:
        await backend.sweep()
    except Unavailable:
        log.warning("What unfinished documents left behind is still there: the next start sweeps")


async def _build(settings: Settings, database: Database, stack: AsyncExitStack) -> Backend:
    clock, secret = SystemClock(), settings.secret.get_secret_value()
    event_store = await _event_store(settings, stack)
    admission, keys = Admission(event_store.presence), SqlApiKeyStore(database)
    ports = _turn_ports(settings, database, event_store, clock, stack)
    models = ModelCatalogue(ports.chat_shell, clock)
    store = SqlKnowledgeStore(database, clock)
    knowledge = KnowledgePorts(store, TimedRetrieval(SqlRetrieval(database)), LibraryDocumentReader(), clock)
    descriptions = SafeDescriptions(SqlProtectedKnowledge(database), LoggingDescriptionObserver())
    ledger = SqlRestrictedLedger(database)
    replica = secrets.token_hex(8)
    sources = TurnSources(
        origins=TurnOrigins(ports.conversations, ports.turns, clock, secret),
        scopes=TurnScopes(store, descriptions, installed_blocks(), ports.observer),
        models=models,
    )
    services = Services(
        authenticate=Authenticate(keys),
        api_keys=ApiKeys(keys, clock),
        admission=admission,
        readiness=Readiness(admission, database),
        models=models,
        conversations=Conversations(ports.conversations, clock, secret),
        knowledge=build_knowledge(knowledge, descriptions),
        restricted=build_restricted(
            RestrictedPorts(ledger, SqlAuditTrail(database), LoggingSafeSummaryObserver()),
            knowledge,
            RestrictedLimits(**settings.restricted_budgets.model_dump()),
            secret,
            timedelta(seconds=settings.turn_timeout_seconds),
        ),
        responses=_response_services(
            settings, ports, sources, admission, replica=replica, withheld=WithheldTurns(ports.conversations, store)
        ),
    )
    recovery = RecoverTurns(ports, replica, is_only_replica=not settings.redis_url)
    sweep = partial(store.sweep, is_only_replica=not settings.redis_url)
    return Backend(services, recovery, sweep, ForgetSearches(ledger, clock))


def _turn_ports(
    settings: Settings, database: Database, store: EventStore, clock: Clock, stack: AsyncExitStack
) -> TurnPorts:
    chat_shell = connect_chat_shell(
        settings.chat_shell_url,
        settings.service_token.get_secret_value(),
        clock=clock,
        max_message_bytes=2 * settings.max_body_bytes,
    )
    stack.push_async_callback(chat_shell.close)
    return TurnPorts(
        chat_shell=chat_shell,
        conversations=SqlConversationStore(database),
        turns=SqlTurnStore(database),
        events=store.events,
        signals=store.signals,
        clock=clock,
        observer=LoggingTurnObserver(),
        outgoing=OutgoingCheck(
            SqlProtectedKnowledge(database), SqlRestrictedLedger(database), clock, settings.secret.get_secret_value()
        ),
    )


async def _event_store(settings: Settings, stack: AsyncExitStack) -> EventStore:
    if not settings.redis_url:
        return EventStore(MemoryEventLog(settings.event_retention_seconds), MemoryStopSignals(), None)
    client = await _connect_redis(settings.redis_url, stack)
    events = load("backend.adapters.redis.event_log:RedisEventLog")(client, settings.event_retention_seconds)
    signals = load("backend.adapters.redis.stop_signals:RedisStopSignals")(client)
    stack.push_async_callback(events.aclose)
    stack.push_async_callback(signals.aclose)
    presence = await stack.enter_async_context(load("backend.adapters.redis.presence:watching")(client))
    return EventStore(events, signals, presence)


async def _connect_redis(url: str, stack: AsyncExitStack) -> Any:
    try:
        client = load("backend.adapters.redis.client:connect")(url)
        stack.push_async_callback(client.aclose)
        await load("backend.adapters.redis.client:meet")(client, url)
    except ValueError as error:
        raise WrongSetting(f"BACKEND_REDIS_URL: {error}") from None
    return client


def _response_services(
    settings: Settings,
    ports: TurnPorts,
    sources: TurnSources,
    admission: Admission,
    *,
    replica: str,
    withheld: WithheldTurns,
) -> ResponseServices:
    policy = TurnPolicy(
        time_zone=settings.time_zone,
        timeout=timedelta(seconds=settings.turn_timeout_seconds),
        max_knowledge_calls=MAX_KNOWLEDGE_CALLS,
        replica=replica,
        secret=settings.secret.get_secret_value(),
        keeps_context=settings.context_policy is ContextPolicy.DURABLE,
    )
    registry = TurnRegistry(ports, RunTurn(ports), drain_seconds=settings.turn_timeout_seconds)
    cancel = CancelTurn(ports)
    return ResponseServices(
        start=StartTurn(ports, sources, policy, admission, registry),
        follow=FollowTurn(ports.turns, ports.events),
        cancel=cancel,
        read=ReadResponses(ports.turns, cancel),
        prompts=ReadPrompts(ports.turns, ports.conversations, withheld),
        registry=registry,
        withheld=withheld,
    )


async def _ensure_admin_key(settings: Settings, keys: ApiKeys) -> None:
    """Take the operator's admin key, or make one at the first run and print it, once."""
    if settings.admin_key is not None:
        await keys.ensure_admin_key(settings.admin_key.get_secret_value())
    elif not await keys.all():
        made = secrets.token_urlsafe(32)
        await keys.ensure_admin_key(made)
        print(f"BACKEND_ADMIN_KEY={made}", flush=True)  # noqa: T201 -- promised: printed once, never logged


def _open_database(settings: Settings) -> Database:
    try:
        return open_database(settings.database_url)
    except ValueError as error:
        raise WrongSetting(f"BACKEND_DATABASE_URL: {error}") from None


async def _meet_database(settings: Settings, database: Database) -> None:
    try:
        await meet(database, settings.database_url)
    except ValueError as error:
        raise WrongSetting(f"BACKEND_DATABASE_URL: {error}") from None


def _listening(settings: Settings) -> socket.socket:
    try:
        return listening_socket(settings.host, settings.port)
    except OSError as error:
        place = f"{settings.host}:{settings.port}"
        raise WrongSetting(f"BACKEND_PORT: cannot listen on {place} ({error.strerror})") from None


def _stop_event() -> asyncio.Event:
    """Return an event that the stop signals set; handlers must stand before anything can be asked to stop."""
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
