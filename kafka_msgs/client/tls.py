"""TLS contexts from PEM certificates."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from kafka_msgs.errors import OptionError

__all__ = ["server_tls_context", "tls_context"]

PathLike: TypeAlias = str | os.PathLike[str]


def tls_context(
    *,
    authorities: PathLike | None = None,
    certificate: PathLike | None = None,
    key: PathLike | None = None,
    password: str | None = None,
    check_host_name: bool = True,
) -> ssl.SSLContext:
    """Return a context that verifies the certificates and the host names of brokers.

    ``authorities`` is a file with the certificates of trusted authorities; the default is the authorities of the
    system. ``certificate`` is a file with the client's own certificates, and with its key unless ``key`` is a separate
    key file. ``password`` decrypts the key. All files are in PEM format. Raises ``OptionError`` for an unusable file.
    """
    return tls_context_from_pem(
        authorities=_text("authorities", authorities),
        certificate=_text("certificate", certificate),
        key=_text("key", key),
        password=password,
        check_host_name=check_host_name,
    )


def server_tls_context(*, certificate: PathLike, key: PathLike | None = None) -> ssl.SSLContext:
    """Return a context for a server, which presents a certificate and requests none from clients.

    ``certificate`` is a file with the certificates, and with the key unless ``key`` is a separate key file. Both are in
    PEM format. Raises ``OptionError`` for an unusable file.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load(context, _read("certificate", certificate), _text("key", key), None)
    return context


def tls_context_from_pem(
    *,
    authorities: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    password: str | None = None,
    check_host_name: bool = True,
) -> ssl.SSLContext:
    """Return a context like ``tls_context``, from PEM strings instead of files."""
    try:
        context = ssl.create_default_context(cadata=authorities)
    except ssl.SSLError:
        raise _refusal("authorities", "no certificate in PEM was found") from None
    context.check_hostname = check_host_name
    if certificate is not None:
        _load(context, certificate, key, password)
    return context


def _load(context: ssl.SSLContext, certificate: str, key: str | None, password: str | None) -> None:
    """Load a certificate into a context. OpenSSL reads files only, so temporary files exist for a moment."""
    with TemporaryDirectory(prefix="kafka-msgs-") as directory:
        files = [Path(directory) / "certificate.pem", Path(directory) / "key.pem"]
        for file, text in zip(files, (certificate, key or certificate), strict=True):
            file.touch(mode=0o600)
            file.write_text(text, encoding="ascii")
        try:
            context.load_cert_chain(files[0], files[1], password=password or "")
        except ssl.SSLError as error:
            reason = "the certificate and the key do not belong together, or the password is wrong"
            raise _refusal("certificate", f"{reason} ({error.reason or 'no key in PEM was found'})") from None


def _text(option: str, path: PathLike | None) -> str | None:
    return None if path is None else _read(option, path)


def _read(option: str, path: PathLike) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise _refusal(option, f"{os.fspath(path)} is not a file in PEM") from None
    except OSError as error:
        raise _refusal(option, f"{os.fspath(path)}: {error.strerror}") from None


def _refusal(option: str, reason: str) -> OptionError:
    return OptionError(source="tls", option=option, value=None, reason=reason)
