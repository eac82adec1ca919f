"""Cached prerequisites for starting Kafka nodes: formatted storage, and an archive of classes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.recorders.broker import Jars, run_kafka_class
from tests.support.build_cache import made_once
from tests.support.kafka_listeners import HOST, SCRAM_MECHANISMS, USERS

__all__ = ["copy_formatted", "shared_classes", "write_properties"]

_CACHE: Final = Path(__file__).parents[1] / "recorders" / "target"
_CLUSTER_ID: Final = "a2Fma2EtbXNncy10ZXN0cw"


def copy_formatted(directory: Path, node: int) -> None:
    """Create a formatted storage directory for a node."""
    shutil.copytree(_formatted(), directory)
    meta = directory / "meta.properties"
    own = re.sub(r"(?m)^node\.id=.*$", f"node.id={node}", meta.read_text())
    meta.write_text(re.sub(r"(?m)^directory\.id=.*$", f"directory.id={_kafka_uuid()}", own))


def write_properties(path: Path, settings: Mapping[str, str]) -> None:
    """Write a properties file."""
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def shared_classes(fill: Callable[[Path], None]) -> Path:
    """Return the class data sharing archive, which halves a node's start time; ``fill`` has a node write it."""
    return made_once(_CACHE / f"classes-{Jars.NODE.release}.jsa", fill)


def _formatted() -> Path:
    """Return a cached, formatted storage directory with the SCRAM credentials of all users."""
    arguments = ["format", "-t", _CLUSTER_ID]
    for mechanism in SCRAM_MECHANISMS:
        for name, password in USERS.items():
            arguments += ["--add-scram", f"{mechanism}=[name={name},password={password},iterations=4096]"]
    digest = hashlib.sha256(json.dumps(arguments).encode()).hexdigest()[:12]
    return made_once(_CACHE / f"storage-{Jars.NODE.release}-{digest}", partial(_format, arguments))


def _format(arguments: Sequence[str], kept: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-format-") as directory:
        properties = Path(directory, "server.properties")
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:1",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{HOST}:1,PLAINTEXT://{HOST}:2",
            "log.dirs": str(Path(directory, "data")),
        }
        write_properties(properties, settings)
        run_kafka_class("kafka.tools.StorageTool", [*arguments, "-c", str(properties)], jars=Jars.NODE)
        shutil.copytree(Path(directory, "data"), kept)


def _kafka_uuid() -> str:
    """Return a random UUID in Kafka's base64 form without padding; Kafka does not allow a leading dash."""
    text = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return _kafka_uuid() if text.startswith("-") else text
