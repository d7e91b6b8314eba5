"""Which addresses of images the model's provider may be given: it fetches them, from where it stands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Self
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from backend.conversations.domain.images import DATA_URL
from backend.conversations.domain.input_items import InputImagePart, InputItem
from backend.foundation.domain.json_objects import Steps
from backend.turns.domain.file_parts import list_input_parts
from shared.errors import InvalidRequest

PASS, REFUSE, HOSTS = "pass", "refuse", "hosts:"
WORDS = "pass, refuse or hosts: and a list, such as hosts:images.example.com,example.org"

ITEMS_PER_STEP = 1_000

_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}\.?")
_PRIVATE_ENDS = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "arpa")
"""Ends of names of RFC 6761, RFC 6762 and RFC 8375, ICANN's `internal`, and those that networks use as if they were."""

_EMBEDS_IPV4 = IPv6Network("64:ff9b::/96")
"""The translation of RFC 6052."""


@dataclass(frozen=True)
class ImageAddresses:
    """The operator's rule: the hosts that may be named, with all below them; None for each that is no private one."""

    hosts: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, setting: str) -> Self:
        """Read the setting.

        Raises:
            ValueError: it is none of `WORDS`.
        """
        hosts = tuple(filter(None, (host.strip().lower() for host in setting.removeprefix(HOSTS).split(","))))
        if setting in (PASS, REFUSE):
            return cls(None if setting == PASS else ())
        if not setting.startswith(HOSTS) or not hosts:
            raise ValueError(f"must be {WORDS}")
        return cls(hosts)

    def find_refusal(self, url: str) -> str | None:
        """Return why the provider is not given this address of an image; None where it is."""
        if DATA_URL.match(url):
            return None
        host = normalize("NFKC", unquote(urlsplit(url).hostname or "")).lower().rstrip(".")
        if "\\" in url:
            return "The address of the image holds a backslash."
        if self.hosts is None:
            return "The address of the image is a private one." if _is_private(host) else None
        if any(host == each or host.endswith(f".{each}") for each in self.hosts):
            return None
        if not self.hosts:
            return "Addresses of images are not passed on here: give the image itself as a data: address."
        return "Images of this host are not passed on here: give the image itself as a data: address."


NO_PRIVATE_IMAGES = ImageAddresses()


def check_image_addresses(items: Sequence[InputItem], allowed: ImageAddresses) -> Steps[None]:
    """Check the addresses of all images in an input.

    Raises:
        InvalidRequest: the provider is not given one; `param` names it.
    """
    for place, item in enumerate(items):
        if place % ITEMS_PER_STEP == 0:
            yield
        field, parts = list_input_parts(item)
        for number, part in enumerate(parts):
            if isinstance(part, InputImagePart) and (reason := allowed.find_refusal(part.image_url)):
                raise InvalidRequest(reason, param=f"input[{place}].{field}[{number}].image_url")


def _is_private(host: str) -> bool:
    address = _address_of(host)
    if address is None:
        *_, parent, end = ("", *host.split("."))
        return not parent or end in _PRIVATE_ENDS
    if isinstance(address, IPv6Address):
        inner = IPv4Address(int(address) & 0xFFFFFFFF) if address in _EMBEDS_IPV4 else None
        address = address.ipv4_mapped or address.sixtofour or inner or address
    return not address.is_global or address.is_multicast


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, in each form that programs take: 127.1, 2130706433 and 0x7f.0.0.1 are one."""
    if not _NUMBERS.fullmatch(host):
        try:
            return ip_address(host.partition("%")[0])
        except ValueError:
            return None
    *first, last = [_number(part) for part in host.rstrip(".").split(".")]
    shifted = sum(part << (24 - 8 * place) for place, part in enumerate(first))
    return IPv4Address((shifted + last) & 0xFFFFFFFF)


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    is_octal = text.startswith("0") and not set(text) & {"8", "9"}
    return int(text, 8 if is_octal else 10)
