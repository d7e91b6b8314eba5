"""What a test hears of certificates, and none."""

from shared.certificates import CertificateFiles, Certificates


class HeardCertificates:
    """A `CertificateObserver` that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def certificates_read(self) -> None:
        """Keep it."""
        self.heard.append("read")

    def certificates_unusable(self, reason: str) -> None:
        """Keep it."""
        self.heard.append(f"unusable: {reason}")

    def connection_refused(self, reason: str, *, by_us: bool, is_server: bool) -> None:
        """Keep it."""
        self.heard.append(f"{'server' if is_server else 'client'}, by {'us' if by_us else 'the peer'}: {reason}")


def no_certificates() -> Certificates:
    """Return what a service has that is given no files."""
    return Certificates(CertificateFiles(), HeardCertificates())
