"""Tokens and sets of keys as attackers make them, sent to both services: refused, each with its line."""

import base64
import hmac
import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.api_jws import PyJWS

from backend.identity.tokens.verifier import MAX_TOKEN_CHARS
from tests.e2e.chat_shell_calls import grpc_refusal, post
from tests.e2e.pair import lone_backend, start_pair
from tests.fakes.identity_provider import AUDIENCE, ISSUER, IdentityProvider, curve_key, published, rsa_key, served
from tests.servers.services import Launch, lines_of

NOW = int(datetime.now(UTC).timestamp())
DAY = 86_400
TRAVERSALS = (
    "../../../../dev/null",
    "/proc/self/environ",
    "..\\..\\windows\\win.ini",
    "file:///etc/passwd",
    "first' OR '1'='1",
    "first; rm -rf /",
    "${jndi:ldap://127.0.0.1/a}",
    "first%00",
    "FIRST",
    " first",
    "",
    "k" * 8_000,
)


def encoded(value: object) -> str:
    return padless(json.dumps(value).encode())


def padless(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed_with(secret: bytes, claims: str) -> str:
    signed = f"{encoded({'alg': 'HS256', 'kid': 'first'})}.{claims}"
    return f"{signed}.{padless(hmac.digest(secret, signed.encode(), sha256))}"


def well_signed(provider: IdentityProvider, changes: dict[str, object]) -> str:
    """Sign claims of any kind, those too that no library writes."""
    right = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "org": "acme", "iat": NOW, "exp": NOW + DAY}
    claims = {name: value for name, value in (right | changes).items() if value is not None}
    return PyJWS().encode(json.dumps(claims).encode(), provider.keys["first"], "RS256", {"kid": "first"})


WRONG_CLAIMS: dict[str, dict[str, object]] = {
    "expired": {"exp": NOW - DAY},
    "no end": {"exp": None},
    "end as text": {"exp": "tomorrow"},
    "endless": {"exp": 1e400},
    "not yet valid": {"nbf": NOW + DAY},
    "made tomorrow": {"iat": NOW + DAY},
    "another audience": {"aud": "others"},
    "audience in part": {"aud": AUDIENCE[:-1]},
    "no audience": {"aud": None},
    "empty audiences": {"aud": []},
    "audience of numbers": {"aud": [1, 2]},
    "another issuer": {"iss": "https://evil.example.com"},
    "issuer with a slash": {"iss": ISSUER + "/"},
    "no issuer": {"iss": None},
    "issuers": {"iss": [ISSUER]},
    "no user": {"sub": None},
    "empty user": {"sub": ""},
    "user of 10,000": {"sub": "u" * 10_000},
    "user with a NUL": {"sub": "ada\0"},
    "user as an object": {"sub": {"ada": 1}},
    "empty tenant": {"org": ""},
    "tenant as a list": {"org": ["acme"]},
}


def public_secrets() -> dict[str, bytes]:
    """Return what everybody knows, as secrets that sign."""
    public = rsa_key("first").public_key()
    return {
        "PEM": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "DER": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "JWK": json.dumps(published("first", rsa_key("first"))).encode(),
        "empty": b"",
    }


def forged_tokens(provider: IdentityProvider) -> dict[str, str]:
    """Return what must be refused, whoever made it."""
    header, claims, signature = provider.token().split(".")
    zero = padless(bytes(64))
    deep = b'{"alg":' + b"[" * 3000 + b"]" * 3000 + b"}"
    twice = b'{"alg":"RS256","kid":"first","alg":"none"}'

    def headed(**members: object) -> str:
        return f"{encoded(members)}.{claims}.{signature}"

    named: dict[str, str] = {
        **{f"alg {alg}": f"{encoded({'alg': alg, 'kid': 'first'})}.{claims}." for alg in ("none", "None", "nOnE", "")},
        **{
            f"alg {alg!r}": headed(alg=alg, kid="first")
            for alg in (None, 0, ["RS256"], {"RS256": 1}, "rs256", "RS256 ", "HS256", "RS512", "ES256K")
        },
        "zero signature on a curve": f"{encoded({'alg': 'ES256', 'kid': 'curve'})}.{claims}.{zero}",
        "RSA token under the curve's kid": headed(alg="RS256", kid="curve"),
        "a key of its own": headed(alg="RS256", jwk=published("x", rsa_key("evil"))),
        "an address of keys": headed(alg="RS256", kid="x", jku="http://127.0.0.1:9/"),
        "a critical member": headed(alg="RS256", kid="first", crit=["x"]),
        "not encoded": headed(alg="RS256", kid="first", b64=False, crit=["b64"]),
        "no signature": f"{header}.{claims}.",
        "cut signature": f"{header}.{claims}.{signature[:-8]}",
        "two parts": f"{header}.{claims}",
        "four parts": f"{header}.{claims}.{signature}.{signature}",
        "deep header": f"{padless(deep)}.{claims}.{signature}",
        "two algorithms": f"{padless(twice)}.{claims}.",
        "no UTF-8": f"{padless(bytes([123, 255, 254, 125]))}.{claims}.{signature}",
        "huge": f"{header}.{claims}.{'A' * (MAX_TOKEN_CHARS + 1)}",
        "huge claims": provider.token(noise="x" * MAX_TOKEN_CHARS),
    }
    named |= {name: well_signed(provider, changes) for name, changes in WRONG_CLAIMS.items()}
    named |= {f"secret {name}": signed_with(secret, claims) for name, secret in public_secrets().items()}
    kids = (*TRAVERSALS, 0, True, ["first"], {"first": 1})
    return named | {f"kid {str(kid)[:30]!r}": headed(alg="RS256", kid=kid) for kid in kids}


def settings_for(address: str) -> dict[str, str]:
    return {
        "BACKEND_JWT_ISSUER": ISSUER,
        "BACKEND_JWT_AUDIENCE": AUDIENCE,
        "BACKEND_JWT_JWKS_URL": address,
        "BACKEND_JWT_TENANT_CLAIM": "org",
    }


def test_forged_tokens_are_refused_by_the_backend_each_with_its_line(launch: Launch, tmp_path: Path) -> None:
    provider = IdentityProvider()
    provider.keys["curve"] = curve_key("curve")
    with served(provider) as address:
        backend = lone_backend(launch, tmp_path, **settings_for(address))
        forged = forged_tokens(provider)
        with backend.http("") as client:
            for name, token in forged.items():
                answer = client.get("/v1/files", headers={"authorization": f"Bearer {token}"})
                assert (name, answer.status_code) == (name, 401), answer.text
                error = answer.json()["error"]
                assert not any(len(part) > 20 and part in error["message"] for part in token.split(".")), name
            known = client.get("/v1/files", headers={"authorization": f"Bearer {provider.token(org='acme')}"})
            assert known.status_code == 200
    refused = [line for line in lines_of(backend.backend, event="HTTP request") if line["status"] == 401]
    assert len({line["request_id"] for line in refused}) == len(forged)
    assert lines_of(backend.backend, level="error") == []
    log = backend.backend.log()
    assert not any(len(part) > 40 and part in log for token in forged.values() for part in token.split("."))


async def test_tokens_of_users_are_refused_by_both_servers_of_chat_shell_each_with_its_line(
    launch: Launch, tmp_path: Path
) -> None:
    pair = start_pair(launch, tmp_path)
    provider = IdentityProvider()
    tokens = [None, ".", provider.token(), *list(forged_tokens(IdentityProvider()).values())[:4], "x" * 7_000]
    for token in tokens:
        for method in ("Execute", "ListModels", "ListTools", "RunTool"):
            assert await grpc_refusal(pair, method, b"", token) == ("UNAUTHENTICATED", "Unauthenticated")
        answer = await post(pair, b"{}", token)
        assert answer.status_code == 401
    lines = lines_of(pair.chat_shell, event="Call refused")
    assert len(lines) == 5 * len(tokens)
    assert {line["error"] for line in lines} == {"Unauthenticated"}
