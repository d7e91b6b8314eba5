"""Which addresses are reached through the operator's proxy."""

import pytest
from pydantic import SecretStr

from shared.outgoing import OutgoingProxy

PROXY = "http://user:word@proxy.example.com:3128"
DIRECT = "localhost, .corp.example.com,*.lan,10.0.0.0/8,fd00::/8, api.example.org:8443 ,models.example.net"


@pytest.mark.parametrize(
    ("url", "is_direct"),
    [
        ("https://api.openai.com/v1", False),
        ("http://api.openai.com/v1", True),
        ("https://127.0.0.1:8443/v1", True),
        ("https://localhost/v1", True),
        ("https://[::1]/v1", True),
        ("https://models.corp.example.com", True),
        ("https://MODELS.Corp.Example.com", True),
        ("https://corp.example.com", True),
        ("https://evilcorp.example.com", False),
        ("https://a.lan", True),
        ("https://10.1.2.3:8443", True),
        ("https://11.1.2.3", False),
        ("https://[fd00::1]:8443", True),
        ("https://api.example.org:8443", True),
        ("https://api.example.org", False),
        ("https://models.example.net", True),
        ("https://eu.models.example.net", True),
        ("https://models.example.net.evil.com", False),
    ],
)
def test_addresses_outside_go_through_the_proxy(url: str, is_direct: bool):
    proxy = OutgoingProxy(address=SecretStr(PROXY), direct_hosts=DIRECT)
    assert proxy.for_address(url) == (None if is_direct else PROXY)


def test_without_a_proxy_or_with_a_star_everything_is_direct():
    for proxy in (OutgoingProxy(direct_hosts=DIRECT), OutgoingProxy(address=SecretStr(PROXY), direct_hosts="*")):
        assert proxy.for_address("https://api.openai.com/v1") is None


def test_a_password_is_not_shown():
    assert "word" not in repr(OutgoingProxy(address=SecretStr(PROXY)))
