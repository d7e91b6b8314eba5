"""Certificates of TLS connections between the services, read anew whenever their files change.

cert-manager and the like exchange certificates long before they expire. Connections that are open stay as they are;
each new one is made with the files of that moment, for servers and clients alike.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

ATTEMPTS_TO_READ = 3
HAS_CERTIFICATE = "has_certificate"
"""Where the state of a request says that the client has shown a certificate of the authority."""

FileStamp = tuple[tuple[int, int, int], ...]


class CertificateObserver(Protocol):
    """Hears of certificates and of connections that they do not allow."""

    def certificates_read(self) -> None:
        """Changed files are in use from now on."""
        ...

    def certificates_unusable(self, reason: str) -> None:
        """The changed files cannot be used; those from before stay in use."""
        ...

    def connection_refused(self, reason: str, *, by_us: bool, is_server: bool) -> None:
        """A connection was not made, because we or the other side refused it."""
        ...


class UnusableCertificates(ValueError):
    """The files cannot be read, or do not belong together; the message names no secret."""


@dataclass(frozen=True)
class CertificateFiles:
    """Where PEM files are: what this process shows (certificate with its chain, and key), and whom it trusts.

    Without an authority, servers are checked with the authorities of the system, and clients show no certificate.
    """

    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None

    @property
    def can_serve(self) -> bool:
        """Whether there is a certificate to show."""
        return self.certificate is not None

    @property
    def are_mutual(self) -> bool:
        """Whether clients of this process must show a certificate of the authority."""
        return self.can_serve and self.authority is not None

    def stamp(self) -> FileStamp:
        """Return what changes when one of the files does.

        Raises:
            OSError: one is not there.
        """
        seen = [path.stat() for path in (self.certificate, self.key, self.authority) if path is not None]
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in seen)


class ReadCertificates(NamedTuple):
    """The content of the files at one moment, as PEM, and the contexts that are made of it, none of no files."""

    stamp: FileStamp
    certificate: bytes | None
    key: bytes | None
    authority: bytes | None
    server: ssl.SSLContext | None
    client: ssl.SSLContext | None


class Certificates:
    """The certificates of this moment; ask for them at each connection, from any thread.

    Raises:
        UnusableCertificates: at the start, where the files cannot be used.
    """

    def __init__(self, files: CertificateFiles, observer: CertificateObserver) -> None:
        self.files = files
        self.observer = observer
        self._lock = Lock()
        self._current = _read(files, observer)
        self._seen = self._current.stamp

    def current(self) -> ReadCertificates:
        """Return what the files hold now; what they held before, where that cannot be used."""
        with self._lock:
            stamp = self._stamp()
            if stamp != self._seen:
                self._seen = stamp
                self._read_again()
            return self._current

    def for_server(self) -> ssl.SSLContext:
        """Return a context for all connections of a server, whose clients may show no certificate, but no wrong one."""
        return _PerConnection.of(ssl.PROTOCOL_TLS_SERVER, self._server_context)

    def for_client(self) -> ssl.SSLContext:
        """Return a context for all connections to servers, which must have the name in the address."""
        return _PerConnection.of(ssl.PROTOCOL_TLS_CLIENT, lambda: self.current().client or self._client_of_system)

    @cached_property
    def _client_of_system(self) -> ssl.SSLContext:
        """The context where no files are named: all authorities of the system take 2 MB, and most links are plain."""
        return _context(self.files, ssl.PROTOCOL_TLS_CLIENT, self.observer)

    def _server_context(self) -> ssl.SSLContext:
        context = self.current().server
        if context is None:
            raise ValueError("there is no certificate to serve with")
        return context

    def _stamp(self) -> FileStamp:
        try:
            return self.files.stamp()
        except OSError:
            return ()  # in the middle of an exchange: the next connection looks again

    def _read_again(self) -> None:
        try:
            self._current = _read(self.files, self.observer)
        except UnusableCertificates as error:
            self.observer.certificates_unusable(str(error))
        else:
            self._seen = self._current.stamp
            self.observer.certificates_read()


class _PerConnection(ssl.SSLContext):
    """A context that makes each connection with another context, the one of that moment."""

    _pick: Callable[[], ssl.SSLContext]

    @classmethod
    def of(cls, protocol: int, pick: Callable[[], ssl.SSLContext]) -> "_PerConnection":
        context = cls(protocol)
        context._pick = pick
        return context

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection."""
        return self._pick().wrap_bio(*args, **options)


def _read(files: CertificateFiles, observer: CertificateObserver) -> ReadCertificates:
    """Read files that belong together: they may be exchanged between one and the next.

    Raises:
        UnusableCertificates: they cannot be read, or do not belong together.
    """
    failure = ""
    for _ in range(ATTEMPTS_TO_READ):
        try:
            before = files.stamp()
            found = _read_once(files, before, observer)
            if files.stamp() == before:
                return found
            failure = "they change all the time"
        except OSError as error:
            # an error of OpenSSL is one of the system, too; its reason says what is wrong with a file
            failure = getattr(error, "reason", None) or type(error).__name__
        except ValueError as error:
            failure = str(error)
    raise UnusableCertificates(f"{_list_names(files)}: cannot be used ({failure})")


def _list_names(files: CertificateFiles) -> str:
    return ", ".join(str(path) for path in (files.certificate, files.key, files.authority) if path is not None)


def _read_once(files: CertificateFiles, stamp: FileStamp, observer: CertificateObserver) -> ReadCertificates:
    paths = (files.certificate, files.key, files.authority)
    certificate, key, authority = (path.read_bytes() if path is not None else None for path in paths)
    server = _context(files, ssl.PROTOCOL_TLS_SERVER, observer) if files.can_serve else None
    if server is not None and files.authority is not None:
        server.verify_mode = ssl.CERT_OPTIONAL
    client = _context(files, ssl.PROTOCOL_TLS_CLIENT, observer) if stamp else None
    return ReadCertificates(stamp, certificate, key, authority, server, client)


def _context(files: CertificateFiles, protocol: int, observer: CertificateObserver) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if files.certificate is not None:
        context.load_cert_chain(files.certificate, files.key, _no_password)
    if files.authority is not None:
        context.load_verify_locations(files.authority)
    elif protocol == ssl.PROTOCOL_TLS_CLIENT:
        context.load_default_certs()
    context.sslobject_class = _tell_refusals(observer)
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted with a password")


def _tell_refusals(observer: CertificateObserver) -> type[ssl.SSLObject]:
    class ToldHandshake(ssl.SSLObject):
        """A connection that tells why it was not made: servers else close it without a word."""

        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError, ssl.SSLEOFError):
                raise
            except ssl.SSLCertVerificationError as error:
                observer.connection_refused(error.verify_message, by_us=True, is_server=self.server_side)
                raise
            except ssl.SSLError as error:
                reason = error.reason or type(error).__name__
                observer.connection_refused(reason, by_us="ALERT" not in reason, is_server=self.server_side)
                raise

    return ToldHandshake
