"""Starting and stopping the backend, which is put together from what the wiring of each package builds."""

import asyncio
import hmac
import random
import secrets
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial

import structlog

from backend.agents.services.agent_files import AgentFiles
from backend.agents.wiring import build_agents
from backend.chat_shell_client.chosen import connect_chat_shell
from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.conversations.domain.leases import LeaseTerms
from backend.conversations.wiring import ConversationPackage, build_conversations, open_turn_labels
from backend.embeddings.ports import Embedder
from backend.embeddings.wiring import EmbeddingPackage, build_embeddings
from backend.files.services import FilePackage
from backend.files.wiring import build_files
from backend.foundation.http.app import create_admin_app, create_app, http_server
from backend.foundation.http.services import HttpOptions
from backend.foundation.redis.commands import RedisClient
from backend.foundation.services.admission import Admission
from backend.foundation.services.idempotency import OncePerKey
from backend.foundation.services.parts import Part
from backend.foundation.services.readiness import Readiness
from backend.foundation.services.supervision import Supervisor, result_or_error
from backend.foundation.sql.database import Database
from backend.foundation.sql.idempotency import SqlClaimStore
from backend.foundation.telemetry.background import LoggingFailureObserver
from backend.foundation.telemetry.stores import watch_stores
from backend.groups.services import GroupNames
from backend.groups.wiring import build_groups
from backend.identity.domain import RateLimits
from backend.identity.ports import NoteGroups
from backend.identity.services import Authenticate, KeyAdministration
from backend.identity.wiring import build_identity
from backend.knowledge.services.package import KnowledgePackage
from backend.knowledge.sql.editions import SearchInDatabase
from backend.knowledge.wiring import KnowledgeTerms, build_knowledge
from backend.limits.ports.rates import RateStore
from backend.limits.services.turn_rates import DefaultLimits, TurnRates
from backend.limits.telemetry.rates import CountingRateObserver
from backend.mcp.wiring import build_lookups
from backend.openai_api.domain.client_left import DisconnectPolicy
from backend.prompt.ports.agent_use import AgentUse
from backend.prompt.services.read_prompts import ReadPrompts
from backend.reaching import naming_setting, open_event_store, open_reader, reach_engine
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.sql.ledger import forget_results_of
from backend.restricted.wiring import RestrictedTerms, build_outgoing_check, build_restricted, open_meaning_scale
from backend.retention.sql.withholding import withhold_answers
from backend.retention.wiring import build_retention, list_owned_alone
from backend.routes import BEFORE_BODIES, OPERATOR_ROUTERS, public_routers
from backend.schema import open_migrated
from backend.scim.wiring import build_scim
from backend.search.wiring import build_search
from backend.settings import ContextPolicy, Settings
from backend.sign_in.wiring import build_sign_in
from backend.turns.domain.image_addresses import ImageAddresses
from backend.turns.dynamic_blocks.entry_points import load_installed_blocks
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.request.input_files import InputFiles
from backend.turns.services.request.project_files import ProjectFiles
from backend.turns.services.resume.recover_turn import RecoverTurn
from backend.turns.services.resume.recovery import Recovery
from backend.turns.services.run.lease import TurnLease
from backend.turns.services.turn_draft import TurnPolicy
from backend.turns.services.turn_ports import StoredTurns, TurnPorts
from backend.turns.telemetry.observer import LoggingTurnObserver
from backend.turns.wiring import turn_preparation, turn_services
from backend.use_cases import Backend
from backend.vector_stores.wiring import VectorStorePackage, build_vector_stores
from shared.certificates import Certificates
from shared.clock import Clock, SystemClock
from shared.environment import WrongSetting, cause_of
from shared.http_server.server import HttpServer, build_server, stop_event, while_serving
from shared.http_server.tls_listener import tls_listener
from shared.ids import name_cell
from shared.listening import listen_as_set
from shared.loop_meter import LoopMeter
from shared.memory import look_for_cycles_rarely
from shared.shutdown_bound import CLOSING_SECONDS, ShutdownBound, StillRunning
from shared.telemetry import LoggingCertificates

log = structlog.get_logger("backend")

MAX_KNOWLEDGE_CALLS = 10
"""Calls of knowledge tools a turn."""


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then refuse new turns, finish the running ones and return.

    Raises:
        WrongSetting: an address cannot be used: our own, the database's or that of Redis.
    """
    stop = stop_event()
    name_cell(settings.cell)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_migrated(settings))
        with naming_setting("BACKEND_TLS_*"):
            certificates = Certificates(settings.certificate_files, LoggingCertificates())
        backend = await _build(settings, database, certificates, stack)
        await _ensure_admin_key(settings, backend, stop)
        options = _http_options(settings, backend)
        routers = public_routers(
            beside_operators=settings.admin_port is not None,
            page=settings.console,
            signs_in=settings.sign_in is not None,
            has_directory=settings.scim is not None,
        )
        app = create_app(routers, backend.services, options)
        server = http_server(app, allows=options.allows, tls=tls_listener(certificates))
        stack.enter_context(LoopMeter())
        await stack.enter_async_context(_serve_admin(settings, backend))
        look_for_cycles_rarely()
        listening = stack.enter_context(_listen(settings, settings.port, "BACKEND_PORT"))
        await _serve_until(stop, backend, server, listening)


@asynccontextmanager
async def _serve_admin(settings: Settings, backend: Backend) -> AsyncGenerator[None]:
    """Serve health and metrics on a port of their own while the block runs, where one is set."""
    if settings.admin_port is None:
        yield
        return
    app = create_admin_app(OPERATOR_ROUTERS, backend.services)
    with _listen(settings, settings.admin_port, "BACKEND_ADMIN_PORT") as listening:
        async with while_serving(build_server(app), listening):
            log.info("Admin port", port=listening.getsockname()[1])
            yield


def _http_options(settings: Settings, backend: Backend) -> HttpOptions:
    token, scim = settings.service_token.get_secret_value(), settings.scim
    services = {"chat_shell": token} | ({"directory": scim.token} if scim is not None else {})

    async def holder_of(presented: str | None) -> str:
        for name, known in services.items():
            if presented is not None and hmac.compare_digest(presented.encode(), known.encode()):
                return name
        return await backend.authenticate.key_id(presented)

    return HttpOptions(
        token,
        settings.max_body_bytes,
        settings.max_bodies_bytes,
        holder_of,
        cors_origins=settings.cors_origins,
        needs_certificate=settings.certificate_files.are_mutual,
        before_bodies=BEFORE_BODIES,
    )


async def _serve_until(stop: asyncio.Event, backend: Backend, server: HttpServer, listening: socket.socket) -> None:
    bound = ShutdownBound(_log_hanging)
    async with asyncio.TaskGroup() as group:
        async with backend.turns.registry as registry:
            await backend.supervisor.until_done("recovery_at_start", backend.recovery.at_start, stop)
            group.create_task(server.serve(sockets=[listening]))
            background = [group.create_task(loop()) for loop in backend.background_loops]
            log.info("Ready", port=listening.getsockname()[1])
            await stop.wait()
            log.info("Draining", running_turns=registry.running_count)
            bound.begin(registry.longest_drain_seconds + CLOSING_SECONDS)
            backend.admission.close()
            server.send_clients_away()
        bound.begin(CLOSING_SECONDS)
        for task in background:
            task.cancel()
        server.should_exit = True


def _log_hanging(running: StillRunning) -> None:
    log.error("Shutdown takes too long", tasks=running.tasks, threads=running.threads)


async def _build(settings: Settings, database: Database, certificates: Certificates, stack: AsyncExitStack) -> Backend:
    clock, supervisor = SystemClock(), Supervisor(LoggingFailureObserver(), random.random)
    secret, policy = settings.secret.get_secret_value(), _turn_policy(settings)
    lease = TurnLease(policy.replica, _lease_terms(settings))
    streams, rate_counts, redis = await open_event_store(settings, supervisor, clock, stack, lease.tenure)
    watch_stores(database, streams.presence)
    admission = Admission(streams.presence, settings.max_turns)
    groups = build_groups(database, partial(list_owned_alone, database), clock)
    search, knowledge, meaning = _knowledge(settings, database, (admission, groups.names), clock, stack)
    files, vector_stores = _uploads(settings, database, knowledge, clock, supervisor)
    chat_shell, file_indexes = _chat_shell(settings, clock, certificates, supervisor, stack), vector_stores.file_indexes
    of_agents, labels = AgentFiles(files.services, file_indexes), open_turn_labels(database)
    agents = build_agents(database, knowledge.store, chat_shell, of_agents, labels, clock)
    conversations = build_conversations(database, agents.labelled, clock, secret)
    limits, uploads = _build_restricted_terms(settings, policy, meaning.ports.embedder), vector_stores.uploads
    restricted = build_restricted(database, clock, knowledge, uploads, agents.open_files, limits)
    rates = _rates(settings, rate_counts, supervisor, stack)
    stored = StoredTurns(conversations.store, conversations.turns, conversations.waiting, conversations.withheld, lease)
    ports = TurnPorts(
        stored=stored,
        chat_shell=chat_shell,
        events=streams.events,
        signals=streams.signals,
        clock=clock,
        observer=LoggingTurnObserver(),
        outgoing=build_outgoing_check(database, knowledge.store, search.runs, clock, secret),
        background=supervisor,
    )
    given = InputFiles(knowledge.reader, uploads), ProjectFiles(file_indexes)
    shown, blocks = knowledge.descriptions.show, load_installed_blocks()
    context = ContextSources(knowledge.store, agents.labelled, shown, blocks, ports.observer)
    prepare = turn_preparation(ports, context, agents.models, *given, policy)
    lookups = build_lookups(ports, knowledge, policy, admission)
    authenticate, api_keys, identity = _identity(settings, database, clock, redis, groups.claimed.note)
    return Backend(
        admission=admission,
        readiness=Readiness(admission, database),
        once=OncePerKey(SqlClaimStore(database), clock, secret),
        authenticate=authenticate,
        api_keys=api_keys,
        conversations=conversations,
        prompts=_prompts(conversations, agents.presets),
        files=files,
        parts=(*identity, groups.part, meaning.part, knowledge.part, vector_stores.part, restricted, lookups),
        turns=(turns := turn_services(ports, prepare, agents.models, knowledge.store, admission, rates)),
        agents=agents,
        recovery=Recovery(ports, RecoverTurn(ports, secret), turns.registry, admission),
        supervisor=supervisor,
        retention=build_retention(database, settings.retention, clock, conversations.store, knowledge.store),
    )


def _lease_terms(settings: Settings) -> LeaseTerms | None:
    return LeaseTerms(seconds=settings.turn_lease_seconds) if settings.redis_url else None


def _prompts(conversations: ConversationPackage, agents: AgentUse) -> ReadPrompts:
    access, withheld = conversations.access, conversations.withheld
    return ReadPrompts(conversations.turns, conversations.store, access, withheld, agents)


def _identity(
    settings: Settings, database: Database, clock: Clock, redis: RedisClient | None, note_groups: NoteGroups
) -> tuple[Authenticate, KeyAdministration, tuple[Part, ...]]:
    trust, terms = settings.token_trust, settings.sign_in
    proxy = settings.proxy.for_address(trust.key_set_url) if trust is not None else None
    authenticate, keys, part, store, read_tokens = build_identity(database, clock, redis, trust, proxy, note_groups)
    parts = [part]
    if terms is not None and read_tokens is not None:
        parts.append(build_sign_in(store, keys, read_tokens(terms.client_id), terms, proxy, clock))
    if settings.scim is not None:
        parts.append(build_scim(database, settings.scim, partial(list_owned_alone, database), clock))
    return authenticate, keys, tuple(parts)


def _knowledge(
    settings: Settings, database: Database, around: tuple[Admission, GroupNames], clock: Clock, stack: AsyncExitStack
) -> tuple[SearchInDatabase, KnowledgePackage, EmbeddingPackage]:
    admission, names = around
    providers = (settings.embedder, settings.reranker, settings.moderation)
    meaning = build_embeddings(*providers, admission, clock, stack)
    reader = open_reader(settings, clock, stack)
    search = build_search(database, clock, meaning.ports, reach_engine(settings, stack))
    terms = KnowledgeTerms(settings.restricted_grade, not settings.redis_url, names)
    hooks = (forget_results_of, withhold_answers)
    knowledge = build_knowledge(database, clock, hooks, search, reader, terms)
    return search, knowledge, meaning


def _chat_shell(
    settings: Settings, clock: Clock, certificates: Certificates, supervisor: Supervisor, stack: AsyncExitStack
) -> ChatShell:
    chat_shell = connect_chat_shell(
        settings.chat_shell_url,
        settings.service_token.get_secret_value(),
        clock=clock,
        max_message_bytes=2 * settings.max_body_bytes,
        certificates=certificates,
        supervisor=supervisor,
    )
    stack.push_async_callback(chat_shell.close)
    return chat_shell


def _build_restricted_terms(settings: Settings, policy: TurnPolicy, embedder: Embedder | None) -> RestrictedTerms:
    limits = RestrictedLimits(**settings.restricted_budgets.model_dump(), facts=settings.restricted_facts)
    model = settings.embedding_model, settings.embedding_digest
    scale = open_meaning_scale(embedder, *model) if embedder is not None and settings.restricted_meaning else None
    return RestrictedTerms(limits, policy.timeout, policy.secret, scale)


def _rates(settings: Settings, store: RateStore, supervisor: Supervisor, stack: AsyncExitStack) -> TurnRates:
    names = list(RateLimits.model_fields)
    key, tenant = ({name: getattr(settings, f"{of}_{name}") for name in names} for of in ("key", "tenant"))
    defaults = DefaultLimits(RateLimits(**key), RateLimits(**tenant))
    rates = TurnRates(store, CountingRateObserver(), defaults)
    stack.push_async_callback(supervisor.attempt, "turn_rates", rates.write)
    return rates


def _uploads(
    settings: Settings, database: Database, knowledge: KnowledgePackage, clock: Clock, supervisor: Supervisor
) -> tuple[FilePackage, VectorStorePackage]:
    files = build_files(database, clock, settings.max_files, (knowledge.store.withdraw_file,), supervisor)
    return files, build_vector_stores(knowledge, files, clock, is_only_replica=not settings.redis_url)


def _turn_policy(settings: Settings) -> TurnPolicy:
    return TurnPolicy(
        time_zone=settings.time_zone,
        timeout=timedelta(seconds=settings.turn_timeout_seconds),
        max_knowledge_calls=MAX_KNOWLEDGE_CALLS,
        replica=secrets.token_hex(8),
        secret=settings.secret.get_secret_value(),
        system_prompt=settings.system_prompt,
        keeps_context=settings.context_policy is ContextPolicy.DURABLE,
        drain=timedelta(seconds=settings.drain_seconds) if settings.drain_seconds is not None else None,
        strict_requests=settings.strict_requests,
        images=ImageAddresses.parse(settings.image_urls),
        quiet_seconds=settings.restricted_stream_seconds,
        on_disconnect=DisconnectPolicy(settings.on_disconnect_chat, settings.on_disconnect_responses),
    )


async def _ensure_admin_key(settings: Settings, backend: Backend, stop: asyncio.Event) -> None:
    """See to it that there is an admin key; a database that is away is waited for.

    Raises:
        WrongSetting: the key cannot be stored.
    """
    step = partial(_take_admin_key, settings, backend.api_keys)
    error = await result_or_error(backend.supervisor.through_outages("admin_key", step, stop))
    if error is not None:
        raise WrongSetting(f"BACKEND_ADMIN_KEY: the key cannot be stored ({cause_of(error)})") from None


async def _take_admin_key(settings: Settings, keys: KeyAdministration) -> None:
    """Take the operator's admin key, or make one at the first run and print it, once."""
    if settings.admin_key is not None:
        await keys.set_admin_key(settings.admin_key.get_secret_value())
    elif (made := await keys.first_admin_key()) is not None:
        print(f"BACKEND_ADMIN_KEY={made}", flush=True)  # noqa: T201 -- promised: printed once, never logged


def _listen(settings: Settings, port: int, setting: str) -> socket.socket:
    return listen_as_set(settings.host, port, host_setting="BACKEND_HOST", port_setting=setting)
