"""The certificates of both services, exchanged while they run as cert-manager does: an authority, then new leaves."""

import asyncio
import ssl

from tests.servers.certificates import Authority, MountedSecret

SEEN_AFTER_SECONDS = 3.0
"""How far apart two services see the same exchange. Nodes of a cluster take up to two minutes; what matters is that
streams begin meanwhile, between services with unlike certificates."""


class ExchangedCertificates:
    """The mounted secrets of the services by their settings' prefixes, of one authority at first."""

    def __init__(self, secrets: dict[str, MountedSecret], authority: Authority) -> None:
        self._secrets = secrets
        self._authority = authority
        self.next_authority = Authority("the next authority")

    def for_users(self) -> ssl.SSLContext:
        """Return a context for users, who trust both authorities and show no certificate."""
        trusted = self._authority.certificate + self.next_authority.certificate
        return ssl.create_default_context(cadata=trusted.decode())

    async def exchange(self) -> None:
        """Let all trust both authorities, then give them new certificates, then let them forget the old authority."""
        old, new = self._authority, self.next_authority
        for issuer, trusted in ((old, (old, new)), (new, (old, new)), (new, (new,))):
            for secret in self._secrets.values():
                secret.write(issuer.issue(), b"".join(each.certificate for each in trusted))
                await asyncio.sleep(SEEN_AFTER_SECONDS)
