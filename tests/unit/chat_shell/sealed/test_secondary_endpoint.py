"""Which secondary model the operator's settings choose, and how long it may take."""

from typing import Any

import pytest
from pydantic import SecretStr

from chat_shell.app import TOOL_TIMEOUT_SECONDS, secondary_endpoint, tool_timeout_seconds
from chat_shell.models.configured.entries import ModelEntry
from chat_shell.sealed.room import OUTCOME_TIMEOUT_SECONDS, RoomTimes
from chat_shell.settings import Settings
from shared.environment import WrongSetting, read_settings

MAIN = ModelEntry(name="main", base_url="http://main.test/v1", api_key=SecretStr("main-key"))
NAME, ADDRESS, KEY = (f"CHAT_SHELL_SAFE_SUMMARY_{part}" for part in ("MODEL", "BASE_URL", "API_KEY"))


def settings(**values: str) -> Settings:
    return read_settings(Settings, {"SERVICE_TOKEN": "token-of-the-tests", **values})


def endpoint(entry: ModelEntry = MAIN, /, **values: str) -> tuple[Any, ...]:
    chosen = secondary_endpoint(settings(**values), (entry, ModelEntry(name="other", base_url="http://other.test/v1")))
    return chosen.model, chosen.base_url, chosen.api_key and chosen.api_key.get_secret_value()


def test_it_is_the_main_model_unless_said_otherwise():
    assert endpoint() == ("main", "http://main.test/v1", "main-key")
    called = MAIN.model_copy(update={"model": "vendor/main"})
    assert endpoint(called) == ("vendor/main", "http://main.test/v1", "main-key")


def test_it_is_reached_through_the_proxy_where_the_main_model_would_be():
    way_out = {"HTTPS_PROXY": "http://user:word@proxy.test:3128", "NO_PROXY": "inside.test"}
    for address, proxy in (("https://outside.test/v1", way_out["HTTPS_PROXY"]), ("https://inside.test/v1", None)):
        chosen = secondary_endpoint(settings(**way_out, **{ADDRESS: address}), (MAIN,))
        assert chosen.proxy == proxy
        assert "word" not in repr(chosen)


def test_another_model_of_the_same_provider_has_its_key():
    assert endpoint(**{NAME: "small"}) == ("small", "http://main.test/v1", "main-key")
    assert endpoint(**{ADDRESS: "http://main.test/v1"}) == ("main", "http://main.test/v1", "main-key")


def test_the_main_models_key_goes_to_no_other_address():
    assert endpoint(**{ADDRESS: "http://second.test/v1"}) == ("main", "http://second.test/v1", None)
    values = {NAME: "small", ADDRESS: "http://second.test/v1", KEY: "second-key"}
    assert endpoint(**values) == ("small", "http://second.test/v1", "second-key")


def test_its_calls_are_salted_where_those_of_the_main_model_are_or_where_they_shall_be():
    salted = MAIN.model_copy(update={"cache_salt": SecretStr("s" * 32)})
    elsewhere = {ADDRESS: "http://second.test/v1"}
    for main, values, is_salted in (
        (MAIN, {}, False),
        (salted, {}, True),
        (salted, elsewhere, False),
        (MAIN, {**elsewhere, "CHAT_SHELL_SAFE_SUMMARY_CACHE_SALT": "1"}, True),
    ):
        assert secondary_endpoint(settings(**values), (main,)).is_salted == is_salted


@pytest.mark.parametrize("address", ["second.test/v1", "ftp://second.test", "http://user:pass@second.test/v1"])
def test_a_wrong_address_stops_the_start(address: str):
    with pytest.raises(WrongSetting, match=ADDRESS):
        settings(**{ADDRESS: address})


@pytest.mark.parametrize(("summary_seconds", "least"), [(1, TOOL_TIMEOUT_SECONDS), (20, 25), (300, 305)])
def test_a_tool_has_more_time_than_the_room(summary_seconds: float, least: float):
    times = RoomTimes(summary_seconds)
    assert times.longest_seconds == summary_seconds + OUTCOME_TIMEOUT_SECONDS
    assert tool_timeout_seconds(times) >= least
    assert tool_timeout_seconds(times) > times.longest_seconds
