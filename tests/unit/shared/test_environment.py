"""A wrong setting is one line that names the variable and says what is wrong with it."""

from collections.abc import Mapping

import pytest

from backend.settings import Settings as BackendSettings
from chat_shell.settings import Settings as ChatShellSettings
from shared.environment import WrongSetting, read_settings

SECRETS = {"SERVICE_TOKEN": "t", "BACKEND_SECRET": "s"}


def complaint(model: type[BackendSettings] | type[ChatShellSettings], environ: Mapping[str, str]) -> str:
    with pytest.raises(WrongSetting) as raised:
        read_settings(model, environ)
    return str(raised.value)


def test_a_setting_that_is_missing_is_told_from_one_that_lacks_a_part():
    assert complaint(BackendSettings, {"SERVICE_TOKEN": "t"}) == "BACKEND_SECRET: is required and not set"
    half = {**SECRETS, "BACKEND_RESTRICTED_BUDGETS": "conversation=8,day=20"}
    assert complaint(BackendSettings, half) == "BACKEND_RESTRICTED_BUDGETS: month: Field required"


def test_our_own_complaints_stand_as_they_are_written():
    words = complaint(BackendSettings, {**SECRETS, "BACKEND_TIME_ZONE": "Mars/Base"})
    assert words == "BACKEND_TIME_ZONE: must be an IANA time zone such as Europe/Berlin"


@pytest.mark.parametrize(
    "given", [{"CHAT_SHELL_MODEL": "gpt-5"}, {"CHAT_SHELL_MODEL_BASE_URL": "https://api.openai.com/v1"}]
)
def test_a_model_without_an_address_or_an_address_without_a_model_stops_the_start(given: dict[str, str]):
    words = complaint(ChatShellSettings, {**SECRETS, **given})
    assert words == "CHAT_SHELL_MODEL and CHAT_SHELL_MODEL_BASE_URL: one is set without the other"


def test_the_demo_model_needs_neither():
    assert read_settings(ChatShellSettings, SECRETS).model == "demo-model"
