"""The backend, put together: the only module that knows every part of it."""

import asyncio
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from backend.conversations.services.conversations import CallerConversations
from backend.conversations.services.read_prompts import ReadPrompts
from backend.conversations.services.use_cases import ConversationServices
from backend.conversations.services.withheld_turns import WithheldText
from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from backend.foundation.http.app import create_app
from backend.foundation.http.listening import HttpServer, http_server, listening_socket
from backend.foundation.http.services import HttpOptions
from backend.foundation.services.admission import Admission
from backend.foundation.services.readiness import Readiness
from backend.foundation.sql.chosen import check_database_reachable, open_database
from backend.foundation.sql.database import Database
from backend.identity.services import Authenticate, IdentityServices, KeyAdministration
from backend.identity.sql.api_keys import SqlApiKeyStore
from backend.knowledge.documents.reader import LibraryDocumentReader
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.services.use_cases import KnowledgePorts, KnowledgeServices, build_knowledge
from backend.knowledge.sql.protected import SqlProtectedKnowledge
from backend.knowledge.sql.retrieval import SqlRetrieval
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver, TimedRetrieval
from backend.migrations.migrate import migrate
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.services.forget_searches import ForgetSearches
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.restricted.services.use_cases import RestrictedPorts, RestrictedServices, build_restricted
from backend.restricted.sql.audit import SqlAuditTrail
from backend.restricted.sql.ledger import SqlRestrictedLedger
from backend.restricted.sql.results import forget_results_of
from backend.restricted.telemetry.restricted import LoggingSafeSummaryObserver
from backend.routes import ROUTERS
from backend.settings import ContextPolicy, Settings
from backend.turns.chat_shell.chosen import connect_chat_shell
from backend.turns.dynamic_blocks.entry_points import installed_blocks
from backend.turns.ports.events import EventStore
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.model_catalogue import ModelCatalogue
from backend.turns.services.origin_reader import OriginReader
from backend.turns.services.recovery import Recovery
from backend.turns.services.start_turn import TurnSources
from backend.turns.services.turn_assembly import TurnPolicy
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.use_cases import TurnServices
from backend.turns.telemetry.observer import LoggingTurnObserver
from backend.turns.wiring import event_store, turn_services
from shared.clock import Clock, SystemClock
from shared.environment import WrongSetting
from shared.errors import Unavailable

log = structlog.get_logger("backend")

MAX_KNOWLEDGE_CALLS = 10
"""Calls of knowledge tools a turn."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Backend:
    """All use cases over their adapters."""

    admission: Admission
    readiness: Readiness
    identity: IdentityServices
    conversations: ConversationServices
    knowledge: KnowledgeServices
    restricted: RestrictedServices
    turns: TurnServices
    recovery: Recovery
    sweep: Callable[[], Awaitable[None]]
    forget_searches: ForgetSearches

    @property
    def services(self) -> tuple[object, ...]:
        """What the routes call."""
        return (self.readiness, self.identity, self.conversations, self.knowledge, self.restricted, self.turns)

    @property
    def background_loops(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """What runs beside the requests until this process drains."""
        return (
            self.recovery.keep_alive,
            partial(_sweep, self),
            self.forget_searches.keep_forgetting,
            self.restricted.closing.keep_closing,
        )


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
        await _ensure_admin_key(settings, backend.identity.api_keys)
        await backend.recovery.at_start()
        options = HttpOptions(settings.service_token.get_secret_value(), settings.max_body_bytes)
        server = http_server(create_app(ROUTERS, backend.services, options))
        await _serve_until(stop, backend, server, stack.enter_context(_listening(settings)))


async def _serve_until(stop: asyncio.Event, backend: Backend, server: HttpServer, listening: socket.socket) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listening]))
        background = [group.create_task(loop()) for loop in backend.background_loops]
        async with backend.turns.registry as registry:
            log.info("Ready", port=listening.getsockname()[1])
            await stop.wait()
            log.info("Draining", running_turns=registry.running_count)
            backend.admission.close()
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
    store = await _event_store(settings, stack)
    admission = Admission(store.presence)
    ports = _turn_ports(settings, database, store, clock, stack)
    bases = SqlKnowledgeStore(database, clock, base_deletion_hooks=(forget_results_of,))
    knowledge = KnowledgePorts(bases, TimedRetrieval(SqlRetrieval(database)), LibraryDocumentReader(), clock)
    descriptions = SafeDescriptions(SqlProtectedKnowledge(database), LoggingDescriptionObserver())
    ledger, keys = SqlRestrictedLedger(database), SqlApiKeyStore(database)
    withheld = WithheldText(ports.conversations, bases)
    sources = TurnSources(
        origins=OriginReader(ports.conversations, ports.turns, clock, secret),
        context=ContextSources(bases, descriptions, installed_blocks(), ports.observer),
        models=ModelCatalogue(ports.chat_shell, clock),
    )
    policy = _turn_policy(settings, replica=secrets.token_hex(8))
    return Backend(
        admission=admission,
        readiness=Readiness(admission, database),
        identity=IdentityServices(Authenticate(keys), KeyAdministration(keys, clock)),
        conversations=ConversationServices(
            conversations=CallerConversations(ports.conversations, clock, secret),
            prompts=ReadPrompts(ports.turns, ports.conversations, withheld),
            withheld=withheld,
        ),
        knowledge=build_knowledge(knowledge, descriptions),
        restricted=build_restricted(
            RestrictedPorts(ledger, SqlAuditTrail(database), LoggingSafeSummaryObserver()),
            knowledge,
            RestrictedLimits(**settings.restricted_budgets.model_dump()),
            secret,
            policy.timeout,
        ),
        turns=turn_services(ports, sources, policy, admission, withheld),
        recovery=Recovery(ports, policy.replica, is_only_replica=not settings.redis_url),
        sweep=partial(bases.sweep, is_only_replica=not settings.redis_url),
        forget_searches=ForgetSearches(ledger, clock),
    )


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


def _turn_policy(settings: Settings, replica: str) -> TurnPolicy:
    return TurnPolicy(
        time_zone=settings.time_zone,
        timeout=timedelta(seconds=settings.turn_timeout_seconds),
        max_knowledge_calls=MAX_KNOWLEDGE_CALLS,
        replica=replica,
        secret=settings.secret.get_secret_value(),
        keeps_context=settings.context_policy is ContextPolicy.DURABLE,
    )


async def _event_store(settings: Settings, stack: AsyncExitStack) -> EventStore:
    try:
        return await event_store(settings.redis_url, settings.event_retention_seconds, stack)
    except ValueError as error:
        raise WrongSetting(f"BACKEND_REDIS_URL: {error}") from None


async def _ensure_admin_key(settings: Settings, keys: KeyAdministration) -> None:
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
        await check_database_reachable(database, settings.database_url)
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
