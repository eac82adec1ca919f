"""Every cell of the feature table in ``docs/compare.md``, computed from the installed libraries.

``EVIDENCE`` has a function for each cell that is not empty; it returns the text of the cell. Peers that are not
installed, or not at the compared version, are reported as not run.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files, metadata, version
from importlib.util import find_spec
from typing import Any, Final

import pytest

from kafka_msgs._backend import BACKENDS
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.message import Request
from tests.support.markdown_pages import ROOT
from tests.support.skip_reasons import not_run

OURS: Final = "kafka-msgs"
PEERS: Final = ("confluent-kafka", "aiokafka", "kafka-python", "kio")
MODULES: Final = dict(zip(PEERS, ("confluent_kafka", "aiokafka", "kafka", "kio"), strict=True))
CONSUMER_GROUP_HEARTBEAT, SHARE_FETCH = 68, 78


def _yes(condition: object) -> str:
    return "yes" if condition else "no"


def _attribute(path: str) -> Any:
    """Return ``module:name.name``, or None."""
    module, _, names = path.partition(":")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name, None)
    return found


def _all_exist(*paths: str) -> str:
    return _yes(all(_attribute(path) is not None for path in paths))


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _requests(package: str, base: str) -> set[int]:
    """Return the api keys of the request classes in a package, which are subclasses of ``base``."""
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    classes = (cls for cls in _subclasses(_attribute(base)) if cls.__name__.endswith("Request"))
    return {cls.API_KEY for cls in classes if isinstance(getattr(cls, "API_KEY", None), int)}


def _our_requests() -> dict[int, set[int]]:
    requests = (cls for cls in iter_message_classes() if issubclass(cls, Request))
    return {cls.INFO.api_key: set(cls.INFO.versions) for cls in requests}


def _aiokafka_requests() -> set[int]:
    return _requests("aiokafka.protocol", "aiokafka.protocol.api:Request")


def _kafka_python_requests() -> set[int]:
    return _requests("kafka.protocol", "kafka.protocol.api_message:ApiMessage")


def _part_of(keys: set[int]) -> str:
    ours = _our_requests().keys()
    return f"{len(keys & ours)} of {len(ours)} requests"


def _kio_requests() -> dict[int, set[int]]:
    index = import_module("kio.schema.index")
    return {key: set(index.schema_name_map[name]) for key, name in index.api_key_map.items()}


def _kio_versions() -> str:
    ours, kio = _our_requests(), _kio_requests()
    known = sum(len(versions & kio.get(key, set())) for key, versions in ours.items())
    return f"requests and responses, {known} of {sum(map(len, ours.values()))} versions"


def _mock_cluster() -> str:
    """Return the cell of librdkafka's mock cluster, which has brokers and topics but no administration of groups."""
    producer = _attribute("confluent_kafka:Producer")({"test.mock.num.brokers": 2, "log_level": 0})
    return "mock cluster of librdkafka, partial" if len(producer.list_topics(timeout=20).brokers) == 2 else "no"


def _modern_groups_of_librdkafka() -> str:
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "group.protocol": "consumer", "log_level": 0}
    _attribute("confluent_kafka:Consumer")(settings).close()
    return "yes"


def _is_async(*paths: str) -> bool:
    return all(inspect.iscoroutinefunction(_attribute(path)) for path in paths)


def _extensions(library: str) -> list[str]:
    return [path.name for path in files(library) or () if path.suffix in (".so", ".pyd")]


def _imports_without(module: str, extension: str) -> bool:
    code = f"import sys; sys.modules[{extension!r}] = None; import {module}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


def _kio_core() -> str:
    assert _extensions("kio")
    return "optional" if _imports_without("kio.serial", "kio._kio_native") else "native, required"


def _aiokafka_core() -> str:
    assert _extensions("aiokafka")
    code = "import aiokafka.record.default_records as r; r.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, 0, 100)"
    environment = {"AIOKAFKA_NO_EXTENSIONS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=60)
    return "optional C" if done.returncode == 0 else "C"


def _python(library: str) -> Callable[[], str]:
    return lambda: f"Python {metadata(library)['Requires-Python'].removeprefix('>=')}"


def _module_named(library: str, pattern: str) -> Callable[[], str]:
    """Return the cell of a feature that is no more than a word in the names of modules."""
    return lambda: _yes([path for path in files(library) or () if re.search(pattern, path.name)])


def _for_peers(cell: Callable[[str], Callable[[], str]]) -> dict[str, Callable[[], str]]:
    return {library: cell(library) for library in PEERS}


EVIDENCE: Final[Mapping[str, Mapping[str, Callable[[], str]]]] = {
    "every message at every version": {
        OURS: lambda: _yes(_defined_names() == {cls.__name__ for cls in iter_message_classes()}),
        "confluent-kafka": lambda: "no API for messages" if not _message_names("confluent_kafka") else "",
        "aiokafka": lambda: _part_of(_aiokafka_requests()),
        "kafka-python": lambda: _part_of(_kafka_python_requests()),
        "kio": _kio_versions,
    },
    "producer and consumer": {
        OURS: lambda: f"{_all_exist('kafka_msgs.client:Producer', 'kafka_msgs.client:Consumer')}, new",
        "confluent-kafka": lambda: _all_exist("confluent_kafka:Producer", "confluent_kafka:Consumer"),
        "aiokafka": lambda: _all_exist("aiokafka:AIOKafkaProducer", "aiokafka:AIOKafkaConsumer"),
        "kafka-python": lambda: _all_exist("kafka:KafkaProducer", "kafka:KafkaConsumer"),
        "kio": _module_named("kio", "consumer.py|producer.py"),
    },
    "blocking and asyncio": {
        OURS: lambda: "both" if _is_async("kafka_msgs.client:AsyncProducer.flush") else "blocking",
        "confluent-kafka": lambda: "both" if _is_async("confluent_kafka.aio:AIOConsumer.poll") else "blocking",
        "aiokafka": lambda: "asyncio" if _is_async("aiokafka:AIOKafkaProducer.send") else "blocking",
        "kafka-python": lambda: "asyncio" if _is_async("kafka:KafkaConsumer.poll") else "blocking",
    },
    "groups of KIP-848": {
        OURS: lambda: _yes(ConsumerConfig(group_protocol="consumer")),
        "confluent-kafka": _modern_groups_of_librdkafka,
        "aiokafka": lambda: _yes(CONSUMER_GROUP_HEARTBEAT in _aiokafka_requests()),
        "kafka-python": lambda: _yes(CONSUMER_GROUP_HEARTBEAT in _kafka_python_requests()),
    },
    "share groups of KIP-932": {
        OURS: lambda: "messages, coordinator and broker, no consumer" if _shares_without_a_consumer() else "",
        "confluent-kafka": lambda: "consumer" if _attribute("confluent_kafka:ShareConsumer.poll") else "no",
        "aiokafka": lambda: _yes(SHARE_FETCH in _aiokafka_requests()),
        "kafka-python": lambda: _yes(SHARE_FETCH in _kafka_python_requests()),
        "kio": lambda: "messages" if SHARE_FETCH in _kio_requests() else "no",
    },
    "transactions": {
        OURS: lambda: _all_exist("kafka_msgs.client:Producer.begin_transaction"),
        "confluent-kafka": lambda: _all_exist("confluent_kafka:Producer.begin_transaction"),
        "aiokafka": lambda: _all_exist("aiokafka:AIOKafkaProducer.begin_transaction"),
        "kafka-python": lambda: _all_exist("kafka:KafkaProducer.begin_transaction"),
    },
    "broker for tests, in the process": {
        **_for_peers(lambda library: _module_named(library, "(?i)mock|fake|embedded|(?<!meta)broker(?!_version)")),
        OURS: lambda: _all_exist("kafka_msgs.broker:EmbeddedBroker"),
        "confluent-kafka": _mock_cluster,
    },
    "recording proxy, captures": {
        **_for_peers(lambda library: _module_named(library, "(?i)^(tap|.*proxy|.*pcap|.*capture)")),
        OURS: lambda: _yes(find_spec("kafka_msgs.tap.proxy") and find_spec("kafka_msgs.capture.pcap")),
    },
    "log directories without a broker": {
        **_for_peers(lambda library: _module_named(library, r"(?i)segment|log_(file|reader)\.py$")),
        OURS: lambda: _all_exist("kafka_msgs.log.log_directory:LogDirectory"),
    },
    "compiled parts": {
        OURS: lambda: "optional C" if find_spec("kafka_msgs._core") and "python" in BACKENDS else "",
        "confluent-kafka": lambda: "librdkafka" if _attribute("confluent_kafka:libversion")() else "none",
        "aiokafka": _aiokafka_core,
        "kafka-python": lambda: "none" if not _extensions("kafka-python") else "C",
        "kio": _kio_core,
    },
    "requires": {library: _python(library) for library in (OURS, *PEERS)},
    "version compared": {OURS: lambda: "this one"} | {peer: (lambda peer=peer: version(peer)) for peer in PEERS},
}  # fmt: skip


def _defined_names() -> set[str]:
    """Return the messages of the release, without those that have no version any more."""
    definitions = (path for path in (ROOT / "message_defs/kafka").rglob("*.json"))
    return {path.stem for path in definitions if '"validVersions": "none"' not in path.read_text(encoding="utf-8")}


def _message_names(module: str) -> list[str]:
    return [name for name in dir(import_module(module)) if name.endswith(("Request", "Response"))]


def _shares_without_a_consumer() -> bool:
    found = find_spec("kafka_msgs.groups.share") and SHARE_FETCH in _our_requests()
    return bool(found) and _attribute("kafka_msgs.client:ShareConsumer") is None


def _table() -> dict[str, dict[str, str]]:
    """Return the cells of the feature table, by feature and library."""
    section = (ROOT / "docs/compare.md").read_text(encoding="utf-8").partition("## Features")[2]
    lines = [line.strip("| ").split(" | ") for line in section.partition("\n## ")[0].splitlines() if line[:1] == "|"]
    head, _, *rows = ([cell.strip() for cell in line] for line in lines)
    return {row[0]: dict(zip(head[1:], (*row[1:], *[""] * len(head)), strict=False)) for row in rows}


def test_every_cell_has_evidence() -> None:
    table = _table()
    assert table.keys() == EVIDENCE.keys()
    for feature, cells in table.items():
        assert {library for library, text in cells.items() if text} == EVIDENCE[feature].keys(), feature


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of peers
@pytest.mark.parametrize("library", [OURS, *PEERS])
def test_cells_are_true(library: str) -> None:
    table = _table()
    if library != OURS:
        compared = table["version compared"][library]
        try:
            installed = version(library)
        except PackageNotFoundError:
            installed = "none"
        if installed != compared:
            not_run(f"{library} {compared} is compared, and {installed} is installed")
    texts = {feature: cells[library] for feature, cells in table.items() if cells[library]}
    assert {feature: EVIDENCE[feature][library]() for feature in texts} == texts
