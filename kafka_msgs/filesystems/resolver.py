"""Resolution of URIs to filesystems with their options.

Defines the mapping of schemes to libraries. ``arrow_arguments`` converts options. Options take precedence over
environment variables.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from typing import Final, NamedTuple

from pyarrow import fs

from kafka_msgs.filesystems.arrow_arguments import AZURE, GCS, S3, STORES, Arguments, arguments_of, parameters_of
from kafka_msgs.filesystems.fsspec_bridge import hdfs_filesystem, other_filesystem
from kafka_msgs.filesystems.location import Location
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions

__all__ = ["OpenedFilesystem", "filesystem_of", "settings_for"]

_AZURE: Final = re.compile(r"[^@:]+@[^.@:]+\.[^@:]+")
"""The authority with a container and an account, to which options apply."""
_AZURE_DOMAIN: Final = "dfs.core.windows.net"
_HDFS_PREFIXES: Final = ("dfs.", "fs.defaultFS", "fs.defaultfs")


class OpenedFilesystem(NamedTuple):
    """A filesystem, and the path on it given by the authority of the URI."""

    filesystem: fs.FileSystem
    start: str


def settings_for(scheme: str, given: FilesystemOptions) -> FilesystemOptions:
    """Return the options that apply to filesystems of a scheme."""
    if scheme in STORES:
        return given.starting(*STORES[scheme].prefixes)
    return given.starting(*(_HDFS_PREFIXES if scheme == "hdfs" else ("storage.",)))


@lru_cache(maxsize=16)
def filesystem_of(root: str, fs_options: FilesystemOptions = NO_OPTIONS) -> OpenedFilesystem:
    """Return the filesystem of a root: a URI with parameters and without a path, or empty for the local filesystem.

    Raises ``OSError``, ``ValueError`` and ``MissingExtraError``.
    """
    if not root:
        return OpenedFilesystem(fs.LocalFileSystem(), "")
    location = Location.parse(root)
    if location.scheme == "hdfs":
        return OpenedFilesystem(*_hdfs(location, fs_options))
    if location.scheme not in STORES:
        settings = {name.removeprefix("storage."): value for name, value in fs_options.items}
        parameters = parameters_of(location.query)
        return OpenedFilesystem(*other_filesystem(root.removesuffix(location.query), parameters, settings))
    if not location.authority:
        raise ValueError("there is no bucket or container in it")
    store = STORES[location.scheme]
    if not fs_options.items or (store is AZURE and _AZURE.fullmatch(location.authority) is None):
        return OpenedFilesystem(*fs.FileSystem.from_uri(root))
    opener = next(opener for each, opener in _OPENERS if each is store)
    return OpenedFilesystem(*opener(location.authority, arguments_of(location, dict(fs_options.items))))


def _s3(authority: str, given: Arguments) -> tuple[fs.FileSystem, str]:
    bucket = authority.rpartition("@")[2]
    if not given.keys() & {"region", "endpoint_override"}:
        given["region"] = fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(**given), bucket


def _gcs(authority: str, given: Arguments) -> tuple[fs.FileSystem, str]:
    return fs.GcsFileSystem(**given), authority.rpartition("@")[2]


def _azure(authority: str, given: Arguments) -> tuple[fs.FileSystem, str]:
    container, _, host = authority.partition("@")
    account, _, domain = host.partition(".")
    servers = {"dfs_storage_authority": f".{domain}", "blob_storage_authority": f".{domain.replace('dfs', 'blob', 1)}"}
    named = {"account_name": account} | (servers if domain != _AZURE_DOMAIN else {})
    return fs.AzureFileSystem(**(named | given)), container


def _hdfs(location: Location, fs_options: FilesystemOptions) -> tuple[fs.FileSystem, str]:
    """Return HDFS through ``hdfs_native`` if installed, otherwise through Arrow, which needs Java and ``libhdfs``."""
    named = location.authority or Location.parse(fs_options.get("fs.defaultFS") or "").authority
    user, _, place = named.rpartition("@")
    host, _, port = place.partition(":")
    extra = dict(fs_options.starting("dfs.").items)
    if find_spec("hdfs_native") is None:
        parameters = parameters_of(location.query)
        hadoop = {"user": user or None, "extra_conf": extra, **parameters}
        return fs.HadoopFileSystem(host or "default", int(port or 0), **hadoop), ""
    if user:
        raise ValueError("the user of HDFS is what the environment variable HADOOP_USER_NAME says")
    return hdfs_filesystem(host or None, int(port) if port else None, extra)


_OPENERS: Final = ((S3, _s3), (GCS, _gcs), (AZURE, _azure))
