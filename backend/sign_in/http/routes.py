"""The routes by which a browser signs in to the page; they stand in no description of the API."""

import html
from typing import Annotated, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

from backend.foundation.http.bodies import PAGE_HEADER, SESSION_COOKIES, read_session
from backend.foundation.http.errors import status_of
from backend.foundation.http.json_body import new_router
from backend.foundation.http.page_headers import SECURITY_HEADERS
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import unix_seconds
from backend.identity.domain import ApiKey, KeyRole
from backend.sign_in.services import Opened, SignIn
from shared.errors import BallastError, PermissionDenied, Unauthenticated, Unavailable

ATTEMPT_COOKIES = ("__Secure-ballast-sign-in", "ballast-sign-in")
ATTEMPT_SECONDS = 600
ATTEMPT_PATH = "/sign-in"
NEVER_KEPT = {"cache-control": "no-store", "referrer-policy": "no-referrer"}

router: APIRouter = new_router("Sign-in")
SignInDep = Annotated[SignIn, Depends(service_of(SignIn))]


class ShownSession(BaseModel):
    """Who is signed in."""

    object: Literal["session"] = "session"
    user_id: str
    tenant: str
    role: KeyRole
    expires_at: int | None


class EndedSession(BaseModel):
    """A session that has ended; `address` is where the one at the identity provider can be ended, too."""

    object: Literal["session.deleted"] = "session.deleted"
    address: str | None


@router.get("/sign-in", include_in_schema=False)
async def go_to_provider(sign_in: SignInDep) -> Response:
    """Send the browser to the identity provider."""
    try:
        address, attempt = await sign_in.begin()
    except Unavailable as error:
        return _refuse(error)
    answer = RedirectResponse(address, 303, NEVER_KEPT)
    _keep_attempt(answer, sign_in, attempt.to_cookie(), ATTEMPT_SECONDS)
    return answer


@router.get("/sign-in/callback", include_in_schema=False)
async def come_back(request: Request, sign_in: SignInDep) -> Response:
    """Open a session for whom the identity provider sends back, and lead them to the page."""
    kept = request.cookies.get(ATTEMPT_COOKIES[not sign_in.terms.is_secure])
    try:
        opened = await sign_in.complete(kept, request.query_params, request.headers.get("host", ""))
    except (Unauthenticated, Unavailable) as error:
        answer: Response = _refuse(error)
    else:
        answer = RedirectResponse("/", 303, NEVER_KEPT)
        _keep_session(answer, sign_in, opened)
    _keep_attempt(answer, sign_in, "", 0)
    return answer


@router.post("/sign-in/logout", include_in_schema=False)
async def hear_of_logout(request: Request, sign_in: SignInDep) -> Response:
    """End the sessions that the identity provider says have ended; a wrong token is a 400, as it expects."""
    form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
    try:
        await sign_in.end_from_afar(form.get("logout_token", ""))
    except Unavailable:
        raise
    except BallastError as error:
        body = {"error": "invalid_request", "error_description": error.message}
        return JSONResponse(body, 400, NEVER_KEPT)
    return Response(status_code=200, headers=NEVER_KEPT)


@router.get("/session", include_in_schema=False)
async def show_session(request: Request, response: Response, sign_in: SignInDep) -> ShownSession:
    """Return who is signed in; a session that is no longer young gets a new key."""
    presented = _read_session_key(request)
    key, renewed = await sign_in.sessions.renew(presented, request.headers.get("host", ""))
    response.headers.update(NEVER_KEPT)
    if renewed is not None:
        _keep_session(response, sign_in, renewed)
    return _shape(key)


@router.delete("/session", include_in_schema=False)
async def end_session(request: Request, response: Response, sign_in: SignInDep) -> EndedSession:
    """End the session of this browser."""
    await sign_in.sessions.close(_read_session_key(request))
    _keep_session(response, sign_in, Opened("", 0))
    response.headers.update(NEVER_KEPT)
    try:
        return EndedSession(address=await sign_in.address_of_logout())
    except Unavailable:
        return EndedSession(address=None)


def _read_session_key(request: Request) -> str:
    if PAGE_HEADER not in request.headers:
        raise PermissionDenied(f"Only the page may ask for its session: it sends {PAGE_HEADER}.")
    presented = read_session(request.headers)
    if presented is None:
        raise Unauthenticated("There is no session: sign in.")
    return presented


def _shape(key: ApiKey) -> ShownSession:
    expires_at = unix_seconds(key.expires_at) if key.expires_at is not None else None
    return ShownSession(user_id=key.user_id, tenant=key.tenant, role=key.role, expires_at=expires_at)


def _keep_session(answer: Response, sign_in: SignIn, opened: Opened) -> None:
    is_secure = sign_in.terms.is_secure
    answer.set_cookie(
        SESSION_COOKIES[not is_secure],
        opened.secret,
        max_age=opened.seconds,
        secure=is_secure,
        httponly=True,
        samesite="strict",
    )


def _keep_attempt(answer: Response, sign_in: SignIn, text: str, seconds: int) -> None:
    """Keep an attempt in the browser; a strict cookie would be missing where another site sends the browser here."""
    is_secure = sign_in.terms.is_secure
    answer.set_cookie(
        ATTEMPT_COOKIES[not is_secure],
        text,
        max_age=seconds,
        path=ATTEMPT_PATH,
        secure=is_secure,
        httponly=True,
        samesite="lax",
    )


def _refuse(error: BallastError) -> HTMLResponse:
    """Return a page that says why nobody is signed in, for it is a person who sees it."""
    status, _ = status_of(type(error))
    text = html.escape(error.message)
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Ballast</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="stylesheet" href="/console/console.css">'
        '<main class="welcome"><p class="brand">Ballast</p><h1>You are not signed in</h1>'
        f'<p class="lead">{text}</p><p><a class="button primary" href="/sign-in"><span>Try again</span></a></p>'
        '<p><a href="/">Back to the page</a></p></main></html>'
    )
    return HTMLResponse(page, status, {**SECURITY_HEADERS, **NEVER_KEPT})
