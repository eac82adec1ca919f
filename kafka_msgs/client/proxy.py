"""Connections through a SOCKS proxy. Needs the extra ``socks``; ``python-socks`` implements the protocol."""

from __future__ import annotations

import socket
from typing import Final
from urllib.parse import urlsplit

from kafka_msgs.client.network import Address, Endpoint
from kafka_msgs.errors import MissingExtraError, OptionError

__all__ = ["check_proxy", "connect_through"]

_SCHEMES: Final = ("socks5", "socks5h", "socks4", "socks4a", "http")


def check_proxy(url: str) -> None:
    """Raise ``OptionError`` for a URL that is not a proxy URL. The error does not show the URL."""
    try:
        place = urlsplit(url)
        valid = place.scheme in _SCHEMES and bool(place.hostname) and place.port is not None
    except ValueError:
        valid = False
    if not valid:
        reason = f"expected SCHEME://[USER:PASSWORD@]HOST:PORT with one of {', '.join(_SCHEMES)}"
        raise OptionError(source="client", option="proxy", value=None, reason=reason)


def connect_through(url: str, address: Address, timeout: float) -> Endpoint:
    """Return a connected endpoint. Blocks. Raises ``OSError``, whose text shows no password."""
    try:
        from python_socks import ProxyError, ProxyTimeoutError
        from python_socks.sync import Proxy
    except ImportError:
        raise MissingExtraError(feature="a SOCKS proxy", extra="socks", package="python-socks") from None
    place = urlsplit(url)
    remote = place.scheme in ("socks5h", "socks4a", "http", "socks5")
    plain = url.replace(f"{place.scheme}://", f"{place.scheme.removesuffix('h').removesuffix('a')}://", 1)
    try:
        proxy = Proxy.from_url(plain, rdns=remote)
        connected: socket.socket = proxy.connect(address.host, address.port, timeout=timeout)
    except ProxyTimeoutError:
        raise TimeoutError("the proxy does not answer") from None
    except ProxyError as error:
        raise ConnectionRefusedError(f"the proxy refuses: {error}") from None
    except OSError as error:
        raise OSError(f"the proxy cannot be reached: {error.strerror or error}") from None
    return Endpoint(address, connected.family, None, connected)
