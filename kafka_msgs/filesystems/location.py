"""Locations of files: paths of this machine, and URIs of any filesystem, parsed by one rule.

A scheme has at least two letters and is followed by a colon and a slash, so ``file:/x``, ``dbfs:/x`` and ``s3://b/x``
are URIs, and ``C:/x`` is a path. Only the displayed form of a location is logged or saved: it has no user information
and no query, which may contain keys. This module opens nothing; ``resolver`` opens filesystems.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from attrs import evolve, field, frozen

from kafka_msgs.errors import OptionError
from kafka_msgs.errors.base import mask_credentials

__all__ = ["Location", "is_remote", "mask_uri"]

_URI: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?=/)(?://(?P<authority>[^/?]*))?(?P<rest>.*)", re.DOTALL
)
_QUERY: Final = re.compile(r"\?(?:[A-Za-z_]+=[^&/]*(?:&|$))+$")
"""The parameters of a URI. A question mark without parameters is a wildcard."""
_LOOSE_QUERY: Final = re.compile(r"\?[A-Za-z_.-]+=.*", re.DOTALL)
"""Anything similar to parameters. It is not displayed, even if it is malformed."""
_SPLIT_SECRET: Final = re.compile(r"[^:/\[]*:(?![0-9]*(?:/|$))[^/]*(?:/.*@|(?=/|$))", re.DOTALL)
"""User information that contains a slash, which should be escaped: its first part looks like a host with a port."""
_SAME_AS: Final = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's URI schemes that have another name in Arrow."""
_CONTAINER_SCHEMES: Final = frozenset(["abfs", "abfss", "wasb", "wasbs"])
"""The schemes whose authority is a container, ``@`` and a host."""
_LOCAL: Final = ("", "file")
_LOCAL_HOSTS: Final = ("", "localhost")


@frozen
class Location:
    """A path of this machine, or a URI.

    ``scheme`` is in lower case and empty for a plain path. ``authority`` is the part of a URI between two slashes and
    the path, ``query`` its parameters including the question mark. The repr is the displayed form.
    """

    scheme: str
    authority: str = field(repr=False)
    path: str
    query: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str, source: str = "location") -> Location:
        """Return the location that a text denotes. ``source`` is named in errors.

        Raises ``OptionError`` for a ``file:`` URI with the name of another host.
        """
        match = _URI.fullmatch(text)
        if match is None:
            return cls("", "", text)
        scheme, authority, rest = match["scheme"].lower(), match["authority"] or "", match["rest"]
        if scheme == "file":
            if authority not in _LOCAL_HOSTS:
                reason = (
                    f"{authority!r} is the name of a host there; a path of this machine has three slashes: file:///"
                )
                raise OptionError(source=source, option="path", value=text, reason=reason)
            return cls(scheme, authority, rest)
        query = _QUERY.search(rest)
        parameters = query[0] if query else ""
        return cls(scheme, authority, rest.removesuffix(parameters), parameters)

    @property
    def is_local(self) -> bool:
        """Whether this is a path of this machine."""
        return self.scheme in _LOCAL

    @property
    def kind(self) -> str:
        """The scheme under Arrow's name, such as ``s3`` for ``s3a``."""
        return _SAME_AS.get(self.scheme, self.scheme)

    @property
    def root(self) -> str:
        """The URI of the filesystem, with its parameters and without a path; empty for this machine."""
        return "" if self.is_local else f"{self.kind}://{self.authority}{self.query}"

    @property
    def shown(self) -> str:
        """The location for display, without user information and without parameters."""
        if not self.scheme:
            return str(mask_credentials(self.path)) if "://" in self.path else self.path
        path = _LOOSE_QUERY.sub("", self.path)
        if self.scheme == "file":
            return f"file://{path}"
        user, at, host = self.authority.rpartition("@")
        if not at and (split := _SPLIT_SECRET.match(host + path)):
            return f"{self.scheme}://***@{(host + path)[split.end() :]}"
        has_container = self.scheme in _CONTAINER_SCHEMES and ":" not in user
        return f"{self.scheme}://{user + at if has_container else ''}{host}{path}"

    @property
    def identity(self) -> str:
        """The form under which a run saves the location: absolute for a path, without credentials for a URI."""
        return str(self.local_paths()[0]) if self.is_local else evolve(self, scheme=self.kind).shown.rstrip("/")

    def decodings(self) -> list[str]:
        """Return the path as written and, for a URI with percent escapes, decoded."""
        decoded = unquote(self.path) if self.scheme else self.path
        return [self.path] if decoded == self.path else [self.path, decoded]

    def local_paths(self) -> list[Path]:
        """Return the possible absolute paths on this machine, the most likely first."""
        return [Path(each).absolute() for each in self.decodings()]


def is_remote(text: str) -> bool:
    """Return whether a text is the URI of another filesystem than this machine's."""
    match = _URI.fullmatch(text)
    return match is not None and match["scheme"].lower() not in _LOCAL


def mask_uri(text: str) -> str:
    """Return a path or URI for display, without user information and without parameters."""
    match = _URI.fullmatch(text)
    return text if match is not None and match["scheme"].lower() == "file" else Location.parse(text).shown
