"""An identity provider of the tests: it signs tokens, and publishes its keys in memory or over HTTP."""

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER = "https://login.example.com/realms/staff"
AUDIENCE = "ballast"

SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def rsa_key(name: str) -> rsa.RSAPrivateKey:
    """Return the RSA key of this name, made once a run."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=2048)


@cache
def curve_key(name: str) -> ec.EllipticCurvePrivateKey:
    """Return the key on P-256 of this name, made once a run."""
    return ec.generate_private_key(ec.SECP256R1())


def published(kid: str, key: SigningKey, **fields: object) -> dict[str, Any]:
    """Return the public part of a key as a set of keys lists it."""
    if isinstance(key, rsa.RSAPrivateKey):
        return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", **fields}
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", **fields}


class IdentityProvider:
    """Its keys can be changed, and it can be away; `fetches` counts how often its keys were asked for."""

    def __init__(self) -> None:
        self.keys: dict[str, SigningKey] = {"first": rsa_key("first")}
        self.answer: bytes | None = None
        self.is_away = False
        self.fetches = 0

    def key_set(self) -> bytes:
        """Return its keys, or what a test has put in their place."""
        listed = [published(kid, key) for kid, key in self.keys.items()]
        return self.answer if self.answer is not None else json.dumps({"keys": listed}).encode()

    async def fetch(self) -> bytes:
        """Answer without a network."""
        self.fetches += 1
        if self.is_away:
            raise ConnectionRefusedError
        return self.key_set()

    def token(self, kid: str | None = "first", algorithm: str = "RS256", **claims: object) -> str:
        """Sign a token of ada's for a minute; a claim that is None is left out."""
        now = int(datetime.now(UTC).timestamp())
        whole = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 60, **claims}
        kept = {name: value for name, value in whole.items() if value is not None}
        headers: Mapping[str, str] = {"kid": kid} if kid is not None else {}
        return jwt.encode(kept, self.keys[kid or "first"], algorithm=algorithm, headers=dict(headers))


@contextmanager
def served(provider: IdentityProvider) -> Generator[str]:
    """Publish the keys at an address of this machine, which is lent."""

    class KeyServer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.fetches += 1
            body = b"" if provider.is_away else provider.key_set()
            self.send_response(503 if provider.is_away else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), KeyServer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
