"""Connections to providers and to chat_shell ask whether the other end's machine is there."""

import socket
from typing import Any

import pytest

from backend.chat_shell_client.http_client import HttpChatShell
from chat_shell.models.transport.streaming import open_session
from shared.clock import SystemClock
from shared.tcp_keepalive import IDLE_SECONDS, INTERVAL_SECONDS, MOST_UNANSWERED, keep_asking

BOUND_SECONDS = 15


def test_a_machine_that_is_gone_is_noticed_in_time() -> None:
    assert IDLE_SECONDS + MOST_UNANSWERED * INTERVAL_SECONDS < BOUND_SECONDS


def test_a_socket_of_this_machine_alone_is_left_as_it_is() -> None:
    with socket.socket(socket.AF_UNIX) as plain:
        keep_asking(plain)
        assert plain.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0


@pytest.mark.parametrize("of", ["provider", "chat_shell"])
async def test_connections_are_made_with_it(of: str) -> None:
    session = open_session() if of == "provider" else _session_of_chat_shell()
    with _connector_of(session)._socket_factory((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 9))) as plain:
        assert plain.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == IDLE_SECONDS
    await session.close()


def _connector_of(session: Any) -> Any:
    return session.connector


def _session_of_chat_shell() -> Any:
    client: Any = HttpChatShell("http://127.0.0.1:1", "token", SystemClock(), 1000)
    return client._session
