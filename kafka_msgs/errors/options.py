"""Errors in the options, paths, filesystems and output of functions, data sources and jobs."""

from __future__ import annotations

from attrs import field

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError, mask_credentials, shown

__all__ = [
    "ConcurrentRunError",
    "ExpressionError",
    "ForkedProcessError",
    "JobPathError",
    "OptionError",
    "StorageError",
    "UnseenFileError",
]


@define(kw_only=True, slots=False, repr=False)
class OptionError(KafkaMsgsError, ValueError):
    """An option with a wrong value, or an unknown option.

    Attributes: ``source`` (the function, class or data source), ``option``, ``value`` and ``reason``. URLs in the value
    and in the reason are stripped of user information and queries.
    """

    source: str
    option: str
    value: object = field(converter=mask_credentials)
    reason: str

    def _text(self) -> str:
        given = "" if self.value is None else f" {shown(self.value)}"
        return f"{self.source}: option {self.option}{given}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class JobPathError(KafkaMsgsError, ValueError):
    """A path that a job cannot read from, or must not write to. Attributes: ``path`` and ``reason``."""

    path: str
    reason: str

    def _text(self) -> str:
        return f"{self.path}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class ForkedProcessError(KafkaMsgsError, OSError):
    """A filesystem that cannot be used in this process, because its parent process used it before the fork.

    Attributes: ``filesystem`` (its scheme).
    """

    filesystem: str

    def _text(self) -> str:
        return (
            f"{self.filesystem}: this process was forked from one that has used {self.filesystem}, and would wait "
            "forever; start processes by spawn or forkserver, or before the first use"
        )


@define(kw_only=True, slots=False, repr=False)
class StorageError(KafkaMsgsError, OSError):
    """A filesystem that cannot hold the output of a job, or an operation that it refused.

    Attributes: ``path`` (without credentials) and ``reason``.
    """

    path: str
    reason: str

    def _text(self) -> str:
        return f"{self.path}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class ConcurrentRunError(KafkaMsgsError):
    """Another run has committed its output since this run began. This run changed nothing, and can be repeated.

    Attributes: ``path`` (of the output), ``run`` (the id of this run) and ``reason``.
    """

    path: str
    run: str
    reason: str

    def _text(self) -> str:
        return f"{self.path}: run {self.run} is not committed: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class UnseenFileError(KafkaMsgsError):
    """A file of a run that one of its processes wrote and another one does not see, as on a disk that is not shared.

    Attributes: ``path`` and ``reason``.
    """

    path: str
    reason: str

    def _text(self) -> str:
        return f"{self.path}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class ExpressionError(KafkaMsgsError, ValueError):
    """A filter expression that cannot be parsed.

    Attributes: ``expression``, ``position`` (the index of the character in it) and ``reason``.
    """

    expression: str
    position: int
    reason: str

    def _text(self) -> str:
        return f"{shown(self.expression)} at character {self.position + 1}: {self.reason}"
