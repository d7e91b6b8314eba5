"""Certificates of an authority that a test makes, in files that are exchanged as cert-manager exchanges them."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)
USAGES = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])


class Issued(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Issues certificates; each authority has a key of its own."""

    def __init__(self, name: str = "authority of the tests") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = _unsigned(self._name, self._name, self._key.public_key())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        own = own.add_extension(_usage(is_authority=True), critical=True)
        self._own = own.sign(self._key, hashes.SHA256())
        self.certificate = self._own.public_bytes(Encoding.PEM)

    def issue(self, host: str = "127.0.0.1", until: timedelta = DAY) -> Issued:
        """Issue a certificate for an address or a name, which a server or a client may show."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"service at {host}")])
        alternative = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        unsigned = (
            _unsigned(subject, self._name, key.public_key(), until)
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(is_authority=False), critical=True)
            .add_extension(USAGES, critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        signed = unsigned.sign(self._key, hashes.SHA256())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Issued(signed.public_bytes(Encoding.PEM), private)


class MountedSecret:
    """A folder as Kubernetes mounts a secret: the files are links into a folder that is exchanged at once."""

    def __init__(self, folder: Path, issued: Issued, authority: bytes) -> None:
        self._folder = folder
        self._versions = 0
        folder.mkdir(parents=True)
        self.write(issued, authority)
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (folder / name).symlink_to(Path("..data") / name)
        self.certificate, self.key, self.authority = (folder / name for name in ("tls.crt", "tls.key", "ca.crt"))

    def write(self, issued: Issued, authority: bytes) -> None:
        """Exchange all three files in one step."""
        self._versions += 1
        version = self._folder / f"..{self._versions}"
        version.mkdir()
        for name, content in zip(("tls.crt", "tls.key", "ca.crt"), (*issued, authority), strict=True):
            (version / name).write_bytes(content)
        link = self._folder / "..data_tmp"
        link.symlink_to(version.name)
        link.replace(self._folder / "..data")

    def settings(self, prefix: str) -> dict[str, str]:
        """Return the settings that name the files."""
        return {
            f"{prefix}_TLS_CERT_FILE": str(self.certificate),
            f"{prefix}_TLS_KEY_FILE": str(self.key),
            f"{prefix}_TLS_CA_FILE": str(self.authority),
        }


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, until: timedelta = DAY
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * DAY)
        .not_valid_after(now + until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
