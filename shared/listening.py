"""Sockets that listen at an address of the settings."""

import errno
import socket

from shared.environment import WrongSetting

_FAULTS_OF_PORTS = frozenset({errno.EADDRINUSE, errno.EACCES})
"""The port is in use, or only a privileged process may have it. Whatever else is wrong lies in the host."""


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Bind and listen; port 0 chooses a free port.

    Raises:
        OSError: the address is in use, or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def listen_as_set(host: str, port: int, *, host_setting: str, port_setting: str) -> socket.socket:
    """Bind and listen as two settings say.

    Raises:
        WrongSetting: that cannot be; it names the setting at fault.
    """
    try:
        return open_listening_socket(host, port)
    except OSError as error:
        setting = port_setting if error.errno in _FAULTS_OF_PORTS else host_setting
        raise WrongSetting(f"{setting}: cannot listen on {host}:{port} ({error.strerror})") from None
