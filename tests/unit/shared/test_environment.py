"""A wrong setting is one line that names the variable and says what is wrong with it."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from annotated_types import Ge, Gt, Le, Lt

from backend.settings import DatabaseSettings
from backend.settings import Settings as BackendSettings
from chat_shell.settings import Settings as ChatShellSettings
from shared.environment import WrongSetting, cause_of, read_settings, redact_address
from shared.setting_names import find_injected

NUMBERS: tuple[object, ...] = (int, float, int | None, float | None)
SECRETS = {"SERVICE_TOKEN": "token-of-the-tests", "BACKEND_SECRET": "secret-of-the-tests"}


def complaint(model: type[BackendSettings] | type[ChatShellSettings], environ: Mapping[str, str]) -> str:
    with pytest.raises(WrongSetting) as raised:
        read_settings(model, environ)
    return str(raised.value)


def test_a_setting_that_is_missing_is_told_from_one_that_lacks_a_part():
    assert (
        complaint(BackendSettings, {"SERVICE_TOKEN": "token-of-the-tests"}) == "BACKEND_SECRET: is required and not set"
    )
    half = {**SECRETS, "BACKEND_RESTRICTED_BUDGETS": "conversation=8,day=20"}
    assert complaint(BackendSettings, half) == (
        "BACKEND_RESTRICTED_BUDGETS: must give conversation, day and month, such as conversation=8,day=20,month=60"
    )


@pytest.mark.parametrize(
    ("month", "words"),
    [
        ("1000000001", "month: must be at most 1000000000"),
        ("²", "must look like conversation=8,day=20,month=60"),
    ],
)
def test_a_budget_is_a_number_and_has_a_highest_value(month: str, words: str):
    given = {**SECRETS, "BACKEND_RESTRICTED_BUDGETS": f"conversation=8,day=20,month={month}"}
    assert complaint(BackendSettings, given) == f"BACKEND_RESTRICTED_BUDGETS: {words}"


def test_a_secret_and_a_file_for_it_exclude_each_other(tmp_path: Path):
    (tmp_path / "secret").write_text("secret-of-the-tests", encoding="utf-8")
    both = {**SECRETS, "BACKEND_SECRET_FILE": str(tmp_path / "secret")}
    assert (
        complaint(BackendSettings, both) == "BACKEND_SECRET and BACKEND_SECRET_FILE: both are set, and only one may be"
    )


def test_a_change_of_the_schema_needs_the_databases_address_alone():
    given = {"BACKEND_DATABASE_URL": "sqlite+aiosqlite:///x.db", "BACKEND_TIME_ZONE": "Mars/Base"}
    assert read_settings(DatabaseSettings, given).database_url == "sqlite+aiosqlite:///x.db"
    misspelt = {"BACKEND_DATABSE_URL": "sqlite+aiosqlite:///x.db"}
    with pytest.raises(WrongSetting, match="did you mean BACKEND_DATABASE_URL"):
        read_settings(DatabaseSettings, misspelt)


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


@pytest.mark.parametrize("name", ["SERVICE_TOKEN", "CHAT_SHELL_MODEL_API_KEY"])
@pytest.mark.parametrize("value", ["tökén-hunter2", "hunter2\n", " hunter2", "hunter2\x00"])
def test_a_secret_that_no_header_can_carry_stops_the_start_and_is_not_shown(name: str, value: str):
    words = complaint(ChatShellSettings, {**SECRETS, name: value})
    assert words == f"{name}: holds characters that no header can carry, such as a line's end"


def test_both_services_refuse_the_same_token():
    words = complaint(BackendSettings, {**SECRETS, "SERVICE_TOKEN": "hunter2\n"})
    assert words.startswith("SERVICE_TOKEN: holds characters")


@pytest.mark.parametrize("address", ["http://user:hunter2@host/v1", "http://:hunter2@host", "http://host/?k=hunter2"])
def test_credentials_in_an_address_stop_the_start_and_are_not_shown(address: str):
    model = {"CHAT_SHELL_MODEL": "m", "CHAT_SHELL_MODEL_BASE_URL": address}
    words = complaint(ChatShellSettings, {**SECRETS, **model})
    assert words == "CHAT_SHELL_MODEL_BASE_URL: must hold neither credentials nor a query"


def test_an_address_without_a_host_stops_the_start():
    words = complaint(ChatShellSettings, {**SECRETS, "CHAT_SHELL_BACKEND_URL": "http://"})
    assert words == "CHAT_SHELL_BACKEND_URL: must be an http or https address"


def test_values_may_come_from_files(tmp_path: Path):
    for name, text in (("token", "token-from-a-file\n"), ("url", "postgresql+asyncpg://u:hunter2@h/db\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = {"SERVICE_TOKEN_FILE": f"{tmp_path}/token", "BACKEND_DATABASE_URL_FILE": f"{tmp_path}/url"}
    read = read_settings(BackendSettings, {"BACKEND_SECRET": "secret-of-the-tests", **files})
    assert read.service_token.get_secret_value() == "token-from-a-file"
    assert read.database_url == "postgresql+asyncpg://u:hunter2@h/db"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://:secret@cache:6379/0", "redis://cache:6379/0"),
        ("redis://ann:sec@ret/2@cache:6379/0", "redis://cache:6379/0"),
        ("postgresql+asyncpg://ann:secret@db/ballast?password=secret", "postgresql+asyncpg://db/ballast"),
        ("sqlite+aiosqlite:///var/ballast.db", "sqlite+aiosqlite:///var/ballast.db"),
        ("unix://ann:secret@/run/redis.sock?db=1", "unix:///run/redis.sock"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str, shown: str):
    assert redact_address(address) == shown


def test_an_error_is_named_after_what_it_began_with():
    refused = ConnectionRefusedError("password")
    error = RuntimeError("password")
    error.__cause__ = TimeoutError()
    error.__cause__.__context__ = refused
    assert cause_of(error) == "ConnectionRefusedError"
    assert cause_of(refused) == "ConnectionRefusedError"


@pytest.mark.parametrize(
    ("model", "name", "rest"),
    [
        (BackendSettings, "BACKEND_REDIS_URLL", "; did you mean BACKEND_REDIS_URL?"),
        (BackendSettings, "BACKEND_SECRETS_FILE", "; did you mean BACKEND_SECRET_FILE?"),
        (BackendSettings, "BACKEND_ZZZ", ": docs/settings.md lists those that there are"),
        (ChatShellSettings, "CHAT_SHELL_MODL", "; did you mean CHAT_SHELL_MODEL?"),
    ],
)
def test_a_name_that_is_no_setting_stops_the_start_with_the_nearest_one(
    model: type[BackendSettings] | type[ChatShellSettings], name: str, rest: str
):
    assert complaint(model, {**SECRETS, name: "value"}) == f"{name}: there is no such setting{rest}"
    assert read_settings(model, {**SECRETS, name: ""})


def test_the_address_that_make_run_prints_is_no_typing_error():
    assert read_settings(BackendSettings, {**SECRETS, "BACKEND_URL": "http://127.0.0.1:8000"})


def test_each_service_minds_its_own_names_only():
    assert read_settings(BackendSettings, {**SECRETS, "CHAT_SHELL_MODL": "m"})
    assert read_settings(ChatShellSettings, {**SECRETS, "BACKEND_REDIS_URLL": "redis://cache"})


def test_a_missing_setting_names_the_variable_that_was_probably_meant():
    words = complaint(BackendSettings, {"BACKEND_SECRET": "secret-of-the-tests", "SERVICE_TOKN": "token-of-the-tests"})
    assert words == "SERVICE_TOKEN: is required and not set; SERVICE_TOKN is: a typing error?"


def test_variables_in_which_the_list_of_models_finds_its_keys_are_known(tmp_path: Path):
    listed = tmp_path / "models.yaml"
    listed.write_text("[{name: m, base_url: 'http://m/v1', api_key_env: CHAT_SHELL_KEY_OF_M}]", encoding="utf-8")
    given = {**SECRETS, "CHAT_SHELL_MODELS_FILE": str(listed), "CHAT_SHELL_KEY_OF_M": "key"}
    assert read_settings(ChatShellSettings, given).models_file == listed
    words = complaint(ChatShellSettings, {**given, "CHAT_SHELL_KEY_OF_N": "key"})
    assert words.startswith("CHAT_SHELL_KEY_OF_N: there is no such setting")


# What a Service named `backend` with one port, and one named `backend-cache`, make Kubernetes inject.
SERVICE_LINKS = {
    "BACKEND_SERVICE_HOST": "10.96.0.1",
    "BACKEND_SERVICE_PORT": "8000",
    "BACKEND_SERVICE_PORT_HTTP": "8000",
    "BACKEND_PORT_8000_TCP": "tcp://10.96.0.1:8000",
    "BACKEND_PORT_8000_TCP_PROTO": "tcp",
    "BACKEND_PORT_8000_TCP_PORT": "8000",
    "BACKEND_PORT_8000_TCP_ADDR": "10.96.0.1",
    "BACKEND_CACHE_SERVICE_HOST": "10.96.0.2",
    "BACKEND_CACHE_PORT": "tcp://10.96.0.2:6379",
}


def test_what_kubernetes_injects_is_told_from_settings():
    given = {**SECRETS, **SERVICE_LINKS, "BACKEND_PORT": "8080"}
    assert read_settings(BackendSettings, given).port == 8080
    assert find_injected("BACKEND_", given) == tuple(sorted(SERVICE_LINKS))
    words = complaint(BackendSettings, {**given, "BACKEND_PORT": "tcp://10.96.0.1:8000"})
    assert words.startswith("BACKEND_PORT: is no value of ours: Kubernetes injects it")
    assert "enableServiceLinks: false" in words


@pytest.mark.parametrize("name", ["BACKEND_SECRET", "SERVICE_TOKEN", "BACKEND_ADMIN_KEY"])
def test_a_short_secret_stops_the_start_and_is_not_shown(name: str):
    words = complaint(BackendSettings, {**SECRETS, name: "fifteen-letters"})
    assert words == f"{name}: must have at least 16 characters, better 32 random ones or more"
    assert read_settings(BackendSettings, {**SECRETS, name: "sixteen--letters"})


def test_chat_shell_takes_no_shorter_token_than_the_backend():
    assert complaint(ChatShellSettings, {"SERVICE_TOKEN": "short"}).startswith("SERVICE_TOKEN: must have at least 16")


@pytest.mark.parametrize(
    "given",
    [
        "https://app.example.com/",
        "app.example.com",
        "https://App.example.com",
        "https://a.example.com:443",
        "https://*.example.com",
        "https://a.example.com:x",
        "null",
        "https://user@a.example.com",
        "https://ü.example.com",
    ],
)
def test_an_origin_that_no_browser_sends_is_refused_by_name(given: str) -> None:
    words = complaint(BackendSettings, {**SECRETS, "BACKEND_CORS_ORIGINS": f"http://localhost:3000, {given}"})
    assert words.startswith(f"BACKEND_CORS_ORIGINS: {given!r} is no origin")


def test_any_origin_stands_alone() -> None:
    words = complaint(BackendSettings, {**SECRETS, "BACKEND_CORS_ORIGINS": "*,https://a.example.com"})
    assert words.startswith("BACKEND_CORS_ORIGINS: must hold either *")
    assert read_settings(BackendSettings, {**SECRETS, "BACKEND_CORS_ORIGINS": "*"}).cors_origins == ("*",)


def test_origins_are_parted_by_commas() -> None:
    given = {**SECRETS, "BACKEND_CORS_ORIGINS": "https://a.example.com, http://[::1]:3000,tauri://localhost,"}
    expected = ("https://a.example.com", "http://[::1]:3000", "tauri://localhost")
    assert read_settings(BackendSettings, given).cors_origins == expected
    assert read_settings(BackendSettings, SECRETS).cors_origins == ()


TOKENS = {
    "BACKEND_JWT_ISSUER": "https://login.example.com",
    "BACKEND_JWT_AUDIENCE": "ballast",
    "BACKEND_JWT_JWKS_URL": "https://login.example.com/keys",
}


EMBEDDER = {"BACKEND_EMBEDDING_BASE_URL": "https://models.example.com/v1", "BACKEND_EMBEDDING_MODEL": "small"}


def test_an_embedder_is_set_wholly_or_not_at_all():
    assert read_settings(BackendSettings, SECRETS).embedder is None
    for missing in EMBEDDER:
        given = {name: value for name, value in EMBEDDER.items() if name != missing}
        assert complaint(BackendSettings, {**SECRETS, **given}).startswith(f"{missing}: must be set where BACKEND_EMB")


@pytest.mark.parametrize(
    ("alone", "needed"),
    [
        ("BACKEND_EMBEDDING_API_KEY", "BACKEND_EMBEDDING_BASE_URL"),
        ("BACKEND_EMBEDDING_QUERY_PREFIX", "BACKEND_EMBEDDING_BASE_URL"),
        ("BACKEND_EMBEDDING_PASSAGE_INPUT_TYPE", "BACKEND_EMBEDDING_BASE_URL"),
        ("BACKEND_RERANK_API_KEY", "BACKEND_RERANK_BASE_URL"),
        ("BACKEND_RERANK_MODEL", "BACKEND_RERANK_BASE_URL"),
        ("BACKEND_MODERATION_MODEL", "BACKEND_MODERATION_BASE_URL"),
        ("BACKEND_MODERATION_BASE_URL", "BACKEND_MODERATION_MODEL"),
    ],
)
def test_what_belongs_to_a_provider_is_not_ignored_where_its_address_is_missing(alone: str, needed: str):
    assert complaint(BackendSettings, {**SECRETS, alone: "https://given"}) == f"{needed}: must be set where {alone} is"


def test_prefixes_of_an_embedder_keep_their_blanks_and_its_key_stays_unseen():
    given = EMBEDDER | {"BACKEND_EMBEDDING_QUERY_PREFIX": "query: ", "BACKEND_EMBEDDING_API_KEY": "key-of-the-embedder"}
    embedder = read_settings(BackendSettings, {**SECRETS, **given}).embedder
    assert embedder is not None
    assert (embedder.configured.query.prefix, embedder.configured.passage.prefix) == ("query: ", "")
    assert embedder.address.api_key == "key-of-the-embedder"
    assert "key-of-the-embedder" not in repr(embedder)


def test_an_embedder_and_a_reranker_outside_are_reached_through_the_proxy():
    proxy = "http://proxy.example.com:3128"
    given = EMBEDDER | {"HTTPS_PROXY": proxy, "BACKEND_RERANK_BASE_URL": "http://reranker:8000/v1"}
    settings = read_settings(BackendSettings, {**SECRETS, **given})
    assert settings.embedder is not None
    assert settings.reranker is not None
    assert (settings.embedder.address.proxy, settings.reranker.address.proxy) == (proxy, None)


def test_what_moderates_is_set_with_its_key_and_its_time():
    given = {
        "BACKEND_MODERATION_BASE_URL": "https://models.example.com/v1",
        "BACKEND_MODERATION_MODEL": "omni",
        "BACKEND_MODERATION_API_KEY": "key-of-the-moderator",
    }
    assert read_settings(BackendSettings, SECRETS).moderation is None
    moderation = read_settings(BackendSettings, {**SECRETS, **given}).moderation
    assert moderation is not None
    assert (moderation.model, moderation.timeout_seconds, moderation.address.api_key) == (
        "omni",
        10,
        "key-of-the-moderator",
    )


@pytest.mark.parametrize(
    "name", ["BACKEND_EMBEDDING_BASE_URL", "BACKEND_RERANK_BASE_URL", "BACKEND_MODERATION_BASE_URL"]
)
@pytest.mark.parametrize(
    "wrong", ["models.example.com", "ftp://models", "https://a:b@models/v1", "https://models/?key=1"]
)
def test_an_address_that_cannot_be_right_is_named(name: str, wrong: str):
    assert complaint(BackendSettings, {**SECRETS, **EMBEDDER, name: wrong}).startswith(f"{name}: must ")


def test_tokens_are_trusted_wholly_or_not_at_all():
    assert read_settings(BackendSettings, SECRETS).token_trust is None
    trust = read_settings(BackendSettings, {**SECRETS, **TOKENS}).token_trust
    assert trust is not None
    assert (trust.audiences, trust.algorithms) == (("ballast",), ("RS256", "ES256"))
    for missing in TOKENS:
        given = {name: value for name, value in TOKENS.items() if name != missing}
        assert complaint(BackendSettings, {**SECRETS, **given}).startswith(f"{missing}: must be set where BACKEND_JWT_")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"BACKEND_JWT_ALGORITHMS": "RS256,HS256"}, "BACKEND_JWT_ALGORITHMS: must list some of RS256"),
        ({"BACKEND_JWT_ALGORITHMS": "none"}, "BACKEND_JWT_ALGORITHMS: must list some of RS256"),
        ({"BACKEND_JWT_JWKS_URL": "http://login.example.com/keys"}, "BACKEND_JWT_JWKS_URL: must be an https address"),
        ({"BACKEND_JWT_JWKS_URL": "login"}, "BACKEND_JWT_JWKS_URL: must be an http or https address"),
        ({"BACKEND_JWT_ADMIN_ROLE": "boss"}, "BACKEND_JWT_ROLES_CLAIM: must name the claim"),
        ({"BACKEND_ADMIN_KEY": "eyJhbGciOiJub25lIn0.e30.x"}, "BACKEND_ADMIN_KEY: has the form of a JWT"),
        ({"HTTPS_PROXY": "proxy:3128"}, "HTTPS_PROXY: must be the http or https address of a proxy"),
    ],
)
def test_a_trust_that_would_let_anybody_in_stops_the_start(given: dict[str, str], words: str):
    assert complaint(BackendSettings, {**SECRETS, **TOKENS, **given}).startswith(words)


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (
            BackendSettings,
            {"BACKEND_TLS_CERT_FILE": "/c"},
            "BACKEND_TLS_CERT_FILE and BACKEND_TLS_KEY_FILE: one is set without the other",
        ),
        (
            BackendSettings,
            {"BACKEND_TLS_CA_FILE": "/ca"},
            "BACKEND_CHAT_SHELL_URL: must begin with grpcs:// or https:// with BACKEND_TLS_CA_FILE",
        ),
        (
            ChatShellSettings,
            {"CHAT_SHELL_TLS_KEY_FILE": "/k"},
            "CHAT_SHELL_TLS_CERT_FILE and CHAT_SHELL_TLS_KEY_FILE: one is set without the other",
        ),
        (
            ChatShellSettings,
            {"CHAT_SHELL_TLS_CA_FILE": "/ca"},
            "CHAT_SHELL_BACKEND_URL: must begin with https:// with CHAT_SHELL_TLS_CA_FILE",
        ),
    ],
)
def test_half_of_tls_stops_the_start(
    model: type[BackendSettings] | type[ChatShellSettings], given: dict[str, str], words: str
):
    secrets = SECRETS if model is BackendSettings else {"SERVICE_TOKEN": SECRETS["SERVICE_TOKEN"]}
    assert complaint(model, {**secrets, **given}) == words


@pytest.mark.parametrize("model", [BackendSettings, ChatShellSettings])
def test_each_number_has_a_highest_and_a_lowest_value(model: type[BackendSettings] | type[ChatShellSettings]):
    for name, field in model.model_fields.items():
        if field.annotation in NUMBERS:
            bounds = {type(bound) for bound in cast(list[object], field.metadata)}
            assert bounds & {Ge, Gt} and bounds & {Le, Lt}, name


@pytest.mark.parametrize("most", ["inf", "1e300"])
def test_a_time_without_end_stops_the_start(most: str):
    words = complaint(ChatShellSettings, {**SECRETS, "CHAT_SHELL_MODEL_IDLE_TIMEOUT_SECONDS": most})
    assert words.startswith("CHAT_SHELL_MODEL_IDLE_TIMEOUT_SECONDS: ")


def test_a_limit_that_grpc_cannot_count_to_stops_the_start():
    assert complaint(BackendSettings, {**SECRETS, "BACKEND_MAX_BODY_BYTES": str(2**30)}).startswith(
        "BACKEND_MAX_BODY_BYTES: "
    )
    assert complaint(ChatShellSettings, {**SECRETS, "CHAT_SHELL_MAX_MESSAGE_BYTES": str(2**31)}).startswith(
        "CHAT_SHELL_MAX_MESSAGE_BYTES: "
    )
