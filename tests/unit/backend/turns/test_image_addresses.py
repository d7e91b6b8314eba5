"""Which addresses of images go to the provider, and how the others are refused on both APIs."""

from typing import Any

import pytest

from backend.turns.domain.image_addresses import ImageAddresses
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.served_turns import CHAT, RESPONSES, serve_api

INLINE = "data:image/png;base64,iVBORw0KGgo="
PUBLIC = [
    "https://example.com/a.png",
    "https://8.8.8.8/a.png",
    "http://[2606:4700::1111]/a",
    "https://10.example.com/a",
]
PRIVATE = [
    "http://127.0.0.1/a.png", "http://127.1/a", "http://2130706433/a", "http://0x7f000001/a", "http://0177.0.0.1/a",
    "http://10.0.0.1:8080/a", "http://172.16.5.4/a", "http://192.168.1.1/a", "http://169.254.169.254/latest/meta-data",
    "http://100.64.0.1/a", "http://0.0.0.0/a", "http://224.0.0.1/a", "http://255.255.255.255/a", "http://0/a",
    "http://[::1]/a", "http://[fe80::1]/a", "http://[fd00::1]/a", "http://[::ffff:10.0.0.1]/a", "http://[64:ff9b::a00:1]/a",
    "http://[2002:a00:1::]/a", "http://localhost/a", "http://localhost./a", "http://LOCALHOST/a", "http://a.localhost/a",
    "http://metadata.google.internal/a", "http://printer.local/a", "http://intranet/a", "http://router.lan/a",
    "http://user:secret@10.0.0.1/a", "http://１２７.0.0.1/a", "http://%31%32%37.0.0.1/a", "http://example.com\\@10.0.0.1/a",
    "http://1.0.0.127.in-addr.arpa/a", "http://127.0.0.1./a",
]  # fmt: skip


@pytest.mark.parametrize("url", PUBLIC)
def test_public_addresses_pass(url: str) -> None:
    assert ImageAddresses.parse("pass").find_refusal(url) is None


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses_are_refused_in_each_form(url: str) -> None:
    assert ImageAddresses.parse("pass").find_refusal(url) is not None


def test_hosts_that_are_listed_pass_with_all_below_them_private_ones_too() -> None:
    allowed = ImageAddresses.parse("hosts: example.com, images.lan ")
    passed = [INLINE, "https://example.com/a", "https://cdn.Example.com./a", "http://images.lan/a"]
    refused = [
        "https://example.org/a",
        "https://notexample.com/a",
        "https://example.com.evil.org/a",
        "http://10.0.0.1/a",
    ]
    assert [allowed.find_refusal(url) for url in passed] == [None] * len(passed)
    assert all(allowed.find_refusal(url) for url in refused)


def test_where_none_pass_images_are_given_themselves() -> None:
    allowed = ImageAddresses.parse("refuse")
    assert allowed.find_refusal(INLINE) is None
    assert "data: address" in (allowed.find_refusal("https://example.com/a") or "")


@pytest.mark.parametrize("setting", ["", "yes", "hosts:", "hosts: ,", "example.com"])
def test_another_setting_is_refused(setting: str) -> None:
    with pytest.raises(ValueError, match="pass, refuse or hosts:"):
        ImageAddresses.parse(setting)


def asked(path: str, url: str) -> dict[str, Any]:
    text = "Look."
    if path == CHAT:
        content: list[Any] = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
        return {"messages": [{"role": "user", "content": content}]}
    content = [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": url}]
    return {"input": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("path", "param"),
    [(RESPONSES, "input[0].content[1].image_url"), (CHAT, "messages[0].content[1].image_url")],
)
async def test_a_request_with_a_private_address_is_refused_before_anybody_hears_of_it(path: str, param: str) -> None:
    async with serve_api(answer("Seen.")) as api:
        refused = await api.http.post(path, json=asked(path, "http://169.254.169.254/latest"))
        error = refused.json()["error"]
        assert (refused.status_code, "private" in error["message"]) == (400, True)
        assert error["param"].startswith(param)
        assert api.turns.sent == []
        assert (await api.http.post(path, json=asked(path, "https://example.com/a.png"))).status_code == 200
