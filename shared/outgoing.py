"""The proxy through which addresses outside are reached: those of models, embedders and identity providers."""

from ipaddress import ip_address, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


def is_web_address(text: str) -> bool:
    """Tell whether a text is an http or https address with a host."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def is_unforgeable(address: str) -> bool:
    """Tell whether nobody on the way can change what is read at an address: by https, or on this machine."""
    parts = urlsplit(address)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_HOSTS


def _proxy_address(value: SecretStr) -> SecretStr:
    if not is_web_address(value.get_secret_value()):
        raise ValueError("must be the http or https address of a proxy, such as http://proxy.example.com:3128")
    return value


ProxyAddress = Annotated[SecretStr, AfterValidator(_proxy_address)]
"""The address of a proxy, which may hold a user and a password."""


class OutgoingProxy(BaseModel):
    """The operator's proxy for https addresses, and the hosts that are reached without it, as `NO_PROXY` lists them."""

    model_config = ConfigDict(frozen=True)

    address: ProxyAddress | None = None
    direct_hosts: str = ""

    def for_address(self, url: str) -> str | None:
        """Return the proxy for an address, or None where it is reached directly.

        What is not encrypted, and what is on this machine, is reached directly: a proxy is the way out of a network,
        and plain HTTP is spoken inside of it.
        """
        parts = urlsplit(url)
        host = parts.hostname or ""
        if self.address is None or parts.scheme != "https" or host in LOOPBACK_HOSTS:
            return None
        listed = (each.strip().lower() for each in self.direct_hosts.split(","))
        if any(_covers(each, host, parts.port or 443) for each in listed if each):
            return None
        return self.address.get_secret_value()


NO_PROXY = OutgoingProxy()
"""Everything is reached directly."""


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether an entry of `NO_PROXY` means a host: `*`, a name with all below it, an address, or a network."""
    name, separator, given_port = entry.rpartition(":")
    if separator and given_port.isdecimal() and ":" not in name:
        return int(given_port) == port and _covers(name, host, port)
    domain = entry.removeprefix("*").removeprefix(".")
    return not domain or host == domain or host.endswith(f".{domain}") or _is_in_network(host, domain)


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
