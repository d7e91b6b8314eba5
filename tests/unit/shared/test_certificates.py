"""Certificates are those of the moment, and files that cannot be used change nothing."""

import ssl
from pathlib import Path

import pytest

from shared.certificates import CertificateFiles, Certificates, UnusableCertificates
from tests.fakes.certificates import HeardCertificates
from tests.servers.certificates import Authority, Issued, MountedSecret


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def secret(tmp_path: Path, authority: Authority) -> MountedSecret:
    return MountedSecret(tmp_path / "tls", authority.issue(), authority.certificate)


def files_of(secret: MountedSecret) -> CertificateFiles:
    return CertificateFiles(secret.certificate, secret.key, secret.authority)


def shake(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "127.0.0.1") -> None:
    """Let a client and a server of these contexts connect; the first refusal is raised."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    while waiting:
        for end in tuple(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)


def test_exchanged_files_are_in_use_at_the_next_connection(secret: MountedSecret, authority: Authority):
    heard = HeardCertificates()
    certificates = Certificates(files_of(secret), heard)
    server, client = certificates.for_server(), certificates.for_client()
    first = certificates.current()
    assert certificates.current() is first
    shake(client, server)
    new = Authority("the next authority")
    secret.write(new.issue(), new.certificate)
    shake(client, server)
    assert heard.heard == ["read"]
    assert certificates.current().authority == new.certificate
    before = HeardCertificates()
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(client, Certificates(CertificateFiles(*written(secret, authority)), before).for_server())
    assert heard.heard[1:] == ["client, by us: self-signed certificate in certificate chain"]


def written(secret: MountedSecret, authority: Authority) -> tuple[Path, Path, Path]:
    """Write the files of an authority beside the others."""
    folder = secret.certificate.parent.parent / "before"
    before = MountedSecret(folder, authority.issue(), authority.certificate)
    return before.certificate, before.key, before.authority


@pytest.mark.parametrize("name", ["localhost", "127.0.0.2"])
def test_a_server_of_another_name_is_refused(secret: MountedSecret, name: str):
    heard = HeardCertificates()
    certificates = Certificates(files_of(secret), heard)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(certificates.for_client(), certificates.for_server(), name)
    assert "certificate is not valid for" in heard.heard[0]


def test_unusable_files_leave_those_from_before_in_use(secret: MountedSecret, authority: Authority):
    heard = HeardCertificates()
    certificates = Certificates(files_of(secret), heard)
    first = certificates.current()
    issued = authority.issue()
    for broken in (Issued(b"", b""), Issued(issued.certificate, authority.issue().key)):
        secret.write(broken, authority.certificate)
        assert certificates.current() is certificates.current() is first
    assert [each.partition(":")[0] for each in heard.heard] == ["unusable", "unusable"]
    assert "KEY_VALUES_MISMATCH" in heard.heard[1]
    secret.key.unlink()
    assert certificates.current() is first
    secret.key.symlink_to("..data/tls.key")
    secret.write(issued, authority.certificate)
    assert certificates.current().certificate == issued.certificate


def test_files_that_cannot_be_used_are_named_at_the_start(tmp_path: Path, secret: MountedSecret):
    missing = tmp_path / "missing.crt"
    with pytest.raises(UnusableCertificates, match=r"missing\.crt.*FileNotFoundError"):
        Certificates(CertificateFiles(missing, secret.key), HeardCertificates())
    secret.write(Issued(b"-----BEGIN NOTHING-----", b""), b"")
    with pytest.raises(UnusableCertificates, match=r"tls\.crt"):
        Certificates(files_of(secret), HeardCertificates())


def test_without_files_the_systems_authorities_are_read_for_the_first_connection(secret: MountedSecret):
    heard = HeardCertificates()
    certificates = Certificates(CertificateFiles(), heard)
    assert certificates.current().client is None
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(certificates.for_client(), Certificates(files_of(secret), HeardCertificates()).for_server())
    assert heard.heard == ["client, by us: self-signed certificate in certificate chain"]
