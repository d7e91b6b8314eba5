"""Signing in to the page: the way to the provider and back, sessions, and what is refused."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from backend.identity.domain import ProviderSession
from backend.sign_in.domain import LOGOUT_EVENT, Endpoints
from backend.sign_in.services import OVERLAP, ROTATED_AFTER
from tests.fakes.open_id import AUTHORIZATION, CLIENT_ID, END_SESSION, PAGE, Porch

ADDRESS = "/v1/conversations/conv_none"


@pytest.fixture
def porch() -> Porch:
    return Porch()


def cookie_of(browser: httpx2.AsyncClient) -> str:
    """Return the header with which a browser sends what it keeps."""
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


async def test_who_comes_back_from_the_provider_calls_with_a_cookie(porch: Porch) -> None:
    async with porch.browser() as browser:
        assert (await browser.get("/session", headers=PAGE)).status_code == 401
        answer = await porch.sign_in(browser)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (await browser.get(ADDRESS, headers=PAGE)).status_code == 404
        told = (await browser.get("/session", headers=PAGE)).json()
    assert (told["user_id"], told["tenant"], told["role"]) == ("ada", "acme", "user")
    assert porch.observer.heard == ["signed in: ada"]


async def test_the_browser_is_sent_with_a_challenge_and_keeps_what_it_is_made_of(porch: Porch) -> None:
    async with porch.browser() as browser:
        begun = await browser.get("/sign-in")
    address, kept = begun.headers["location"], begun.headers["set-cookie"]
    assert begun.status_code == 303
    assert address.startswith(f"{AUTHORIZATION}?response_type=code&client_id={CLIENT_ID}&")
    assert "code_challenge_method=S256" in address
    assert all(part not in address for part in kept.split("=", 1)[1].split(";")[0].split(".")[2:])
    assert all(word in kept for word in ("HttpOnly", "SameSite=lax", "Path=/sign-in", "Max-Age=600"))


async def test_the_session_is_in_no_script_and_of_no_other_site(porch: Porch) -> None:
    async with porch.browser() as browser:
        answer = await porch.sign_in(browser)
    (session,) = [cookie for cookie in answer.headers.get_list("set-cookie") if "sign-in" not in cookie]
    assert all(word in session for word in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43"))
    assert "no-store" in answer.headers["cache-control"]


async def test_a_request_of_another_site_is_nobodys(porch: Porch) -> None:
    async with porch.browser() as browser:
        await porch.sign_in(browser)
        assert (await browser.get(ADDRESS)).status_code == 401
        assert (await browser.post("/v1/conversations", json={})).status_code == 401
        assert (await browser.get("/session")).status_code == 403
        assert (await browser.delete("/session")).status_code == 403
        assert (await browser.get(ADDRESS, headers=PAGE)).status_code == 404


async def test_a_cookie_opens_nothing_at_another_host(porch: Porch) -> None:
    async with porch.browser() as browser:
        await porch.sign_in(browser)
        stolen = cookie_of(browser)
    async with porch.browser("http://other.example.com") as thief:
        headers = {**PAGE, "cookie": stolen}
        assert (await thief.get(ADDRESS, headers=headers)).status_code == 401
        assert (await thief.get("/session", headers=headers)).status_code == 401
        secret = stolen.partition("=")[2]
        assert (await thief.get(ADDRESS, headers={"authorization": f"Bearer {secret}"})).status_code == 401


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"state": "guessed"}, "another sign-in"),
        ({"state": ""}, "another sign-in"),
        ({"iss": "https://evil.example.com"}, "another identity provider"),
        ({"code": "guessed"}, "code is wrong"),
        ({"code": ""}, "holds no code"),
        ({"error": "access_denied"}, "signed nobody in"),
    ],
)
async def test_an_answer_that_is_not_the_providers_signs_nobody_in(
    porch: Porch, changed: dict[str, str], reason: str
) -> None:
    async with porch.browser() as browser:
        answer = porch.openid.log_in((await browser.get("/sign-in")).headers["location"])
        refused = await browser.get("/sign-in/callback", params={**answer, **changed})
        assert refused.status_code == 401
        assert reason in refused.text
        assert (await browser.get("/session", headers=PAGE)).status_code == 401
    (heard,) = porch.observer.heard
    assert heard.startswith("refused: ")
    assert reason in heard


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "of-yesterday"}, "nonce is wrong"),
        ({"nonce": None}, "nonce is wrong"),
        ({"iss": "https://evil.example.com"}, "another issuer"),
        ({"aud": "another-client"}, "another audience"),
        ({"aud": [CLIENT_ID, "other"], "azp": "other"}, "another client"),
        ({"exp": 1_000_000_000}, "has expired"),
        ({"sub": None}, "names no subject"),
        ({"org": None}, "names no tenant"),
        ({"roles": ["portal"]}, "service has no page"),
    ],
)
async def test_a_token_that_is_not_for_this_sign_in_signs_nobody_in(
    porch: Porch, claims: dict[str, Any], reason: str
) -> None:
    async with porch.browser() as browser:
        refused = await porch.sign_in(browser, **claims)
        assert refused.status_code == 401
        assert reason in refused.text
        assert (await browser.get("/session", headers=PAGE)).status_code == 401
    assert [heard.startswith("refused: ") for heard in porch.observer.heard] == [True]


async def test_an_answer_is_taken_once_and_by_the_browser_that_began(porch: Porch) -> None:
    async with porch.browser() as browser, porch.browser() as other:
        answer = porch.openid.log_in((await browser.get("/sign-in")).headers["location"])
        assert (await other.get("/sign-in/callback", params=answer)).status_code == 401
        assert (await browser.get("/sign-in/callback", params=answer)).status_code == 303
        assert (await browser.get("/sign-in/callback", params=answer)).status_code == 401


async def test_a_provider_that_is_away_is_said_to_be(porch: Porch) -> None:
    porch.openid.provider.is_away = True
    async with porch.browser() as browser:
        answer = await browser.get("/sign-in")
    assert (answer.status_code, "set-cookie" in answer.headers) == (503, False)
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_a_session_gets_a_new_key_and_the_old_one_ends_behind_it(porch: Porch) -> None:
    async with porch.browser() as browser:
        await porch.sign_in(browser)
        before = cookie_of(browser)
        porch.house.clock.advance(ROTATED_AFTER.total_seconds() + 1)
        told = (await browser.get("/session", headers=PAGE)).json()
        after = cookie_of(browser)
        assert before != after
        assert (await browser.get("/session", headers=PAGE)).json() == told
        assert cookie_of(browser) == after
        porch.house.clock.advance(OVERLAP.total_seconds() + 1)
        assert (await browser.get(ADDRESS, headers=PAGE)).status_code == 404
        assert (await browser.get(ADDRESS, headers={**PAGE, "cookie": before})).status_code == 401


async def test_two_tabs_renew_one_session_once(porch: Porch) -> None:
    async with porch.browser() as one, porch.browser() as other:
        await porch.sign_in(one)
        other.cookies.update(one.cookies)
        porch.house.clock.advance(ROTATED_AFTER.total_seconds() + 1)
        assert (await one.get("/session", headers=PAGE)).status_code == 200
        assert (await other.get("/session", headers=PAGE)).status_code == 200
    assert len(porch.house.state.api_keys) == 2


async def test_a_replaced_key_that_comes_again_ends_the_session(porch: Porch) -> None:
    async with porch.browser() as thief, porch.browser() as owner:
        await porch.sign_in(owner)
        thief.cookies.update(owner.cookies)
        for _ in range(2):
            porch.house.clock.advance(ROTATED_AFTER.total_seconds() + 1)
            await thief.get("/session", headers=PAGE)
        porch.house.clock.advance(OVERLAP.total_seconds() + 1)
        assert (await thief.get(ADDRESS, headers=PAGE)).status_code == 404
        assert (await owner.get("/session", headers=PAGE)).status_code == 401
        assert (await thief.get(ADDRESS, headers=PAGE)).status_code == 401
    assert porch.observer.heard[-1] == "ended 2: a replaced key of the session came again"


async def test_a_session_ends_after_its_hours_however_often_it_is_renewed(porch: Porch) -> None:
    async with porch.browser() as browser:
        await porch.sign_in(browser)
        for _ in range(11):
            porch.house.clock.advance(timedelta(hours=1).total_seconds())
            assert (await browser.get("/session", headers=PAGE)).status_code == 200
        porch.house.clock.advance(timedelta(hours=1).total_seconds())
        assert (await browser.get("/session", headers=PAGE)).status_code == 401


async def test_who_signs_out_is_out_and_hears_where_else(porch: Porch) -> None:
    async with porch.browser() as browser:
        await porch.sign_in(browser)
        kept = cookie_of(browser)
        ended = await browser.delete("/session", headers=PAGE)
        assert ended.json() == {"object": "session.deleted", "address": END_SESSION}
        assert (await browser.get(ADDRESS, headers=PAGE)).status_code == 401
        assert (await browser.get(ADDRESS, headers={**PAGE, "cookie": kept})).status_code == 401


def logout(porch: Porch, **claims: Any) -> dict[str, str]:
    token: dict[str, Any] = {"aud": CLIENT_ID, "events": {LOGOUT_EVENT: {}}, "sub": "ada", "sid": "s-1", **claims}
    return {"logout_token": porch.openid.provider.token(**token)}


@pytest.mark.parametrize("named", [{}, {"sub": None}, {"sid": None}])
async def test_a_logout_elsewhere_ends_the_session_here(porch: Porch, named: dict[str, Any]) -> None:
    async with porch.browser() as browser, porch.browser() as provider:
        await porch.sign_in(browser)
        assert (await browser.get(ADDRESS, headers=PAGE)).status_code == 404
        assert (await provider.post("/sign-in/logout", data=logout(porch, **named))).status_code == 200
        assert (await browser.get(ADDRESS, headers=PAGE)).status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"events": None},
        {"events": {"other": {}}},
        {"nonce": "a"},
        {"sub": None, "sid": None},
        {"aud": "another-client"},
        {"iss": "https://evil.example.com"},
        {"exp": 1_000_000_000},
        {"sid": "s-2"},
    ],
)
async def test_what_is_no_logout_of_this_session_ends_nothing(porch: Porch, claims: dict[str, Any]) -> None:
    async with porch.browser() as browser, porch.browser() as provider:
        await porch.sign_in(browser)
        answer = await provider.post("/sign-in/logout", data=logout(porch, **claims))
        assert answer.status_code == (200 if "sid" in claims and "sub" not in claims else 400)
        assert (await browser.get(ADDRESS, headers=PAGE)).status_code == 404
    assert len(porch.observer.heard) == 2


async def test_a_key_goes_before_a_session(porch: Porch) -> None:
    async with porch.browser() as browser:
        await porch.sign_in(browser)
        wrong = {**PAGE, "authorization": "Bearer wrong"}
        assert (await browser.get(ADDRESS, headers=wrong)).status_code == 401


async def test_administrators_see_sessions_and_end_them_but_rotate_none(porch: Porch) -> None:
    async with porch.browser() as browser:
        await porch.sign_in(browser, roles=["root"])
        (listed,) = (await browser.get("/v1/api_keys", headers=PAGE)).json()["data"]
        assert (listed["origin"], listed["user_id"], listed["role"]) == ("session", "ada", "admin")
        address = f"/v1/api_keys/{listed['id']}"
        assert (await browser.post(f"{address}/rotate", headers=PAGE)).status_code == 409
        assert (await browser.delete(address, headers=PAGE)).status_code == 200
        assert (await browser.get(ADDRESS, headers=PAGE)).status_code == 401


async def test_sessions_of_days_ago_go_with_the_next_sign_in(porch: Porch) -> None:
    async with porch.browser() as browser:
        await porch.sign_in(browser)
        porch.house.clock.advance(timedelta(days=2).total_seconds())
        await porch.sign_in(browser, sid="s-2")
    (key,) = porch.house.state.api_keys.values()
    assert key.session == ProviderSession(subject="ada", session_id="s-2")


async def test_the_page_says_that_one_can_sign_in(porch: Porch) -> None:
    async with porch.browser() as browser:
        assert '<meta name="sign-in" content="on">' in (await browser.get("/")).text


@pytest.mark.parametrize(
    "document",
    [[], {}, {"issuer": "https://other"}, {"issuer": "https://it"}, {"issuer": "https://it", "token_endpoint": "x"}],
)
def test_a_document_that_is_none_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match=r"document of another issuer|names no addresses"):
        Endpoints.read(document, "https://it")


@pytest.mark.parametrize(("methods", "takes_basic"), [(None, True), (["client_secret_post"], False), ([], True)])
def test_how_a_secret_is_sent_follows_the_document(methods: list[str] | None, takes_basic: bool) -> None:
    document = {"issuer": "https://it", "authorization_endpoint": "https://it/a", "token_endpoint": "https://it/t"}
    given = document if methods is None else {**document, "token_endpoint_auth_methods_supported": methods}
    assert Endpoints.read(given, "https://it").takes_basic is takes_basic
