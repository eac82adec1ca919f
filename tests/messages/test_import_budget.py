"""What importing the library loads: counted in modules, never in seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_msgs import errors
from kafka_msgs._backend import BACKENDS
from kafka_msgs.messages import _index

ROOT = Path(__file__).parents[2]
OPTIONAL = ("click", "hypothesis", "jinja2", "kafka_msgs_generator", "pyarrow", "pyspark", "rich", "yaml")
CORE = {
    "kafka_msgs",
    "kafka_msgs._backend",
    "kafka_msgs._core",
    "kafka_msgs.codec",
    "kafka_msgs.codec.options",
    "kafka_msgs.errors",
    *(f"kafka_msgs.errors.{path.stem}" for path in Path(errors.__file__).parent.glob("[a-z]*.py")),
    "kafka_msgs.deferred_attrs",
    "kafka_msgs.fork_locks",
    "kafka_msgs.message",
    "kafka_msgs.validators",
    "kafka_msgs.primitives",
    "kafka_msgs.schema",
    "kafka_msgs.instances",
    "kafka_msgs.instances.sealing",
    "kafka_msgs.versions",
    *(
        ["kafka_msgs._core.extension", "kafka_msgs.instances.native"]
        if "c" in BACKENDS
        else ["kafka_msgs.instances.python"]
    ),
}
MACHINERY = {"kafka_msgs.messages", "kafka_msgs.messages._index", "kafka_msgs.lazy_modules"}


def run(code: str) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


def loaded(code: str) -> set[str]:
    """The modules that are loaded after ``code`` has run."""
    return set(json.loads(run(f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")))


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "kafka_msgs"}


def message_modules(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("kafka_msgs.messages.")} - MACHINERY


def test_importing_the_library_loads_no_message_and_no_machinery() -> None:
    modules = loaded("import kafka_msgs")
    assert ours(modules) == CORE
    assert modules.isdisjoint(OPTIONAL)


def test_importing_the_library_and_a_message_compiles_no_methods_of_errors_and_structs() -> None:
    code = "import linecache\nfrom kafka_msgs import OffsetFetchRequest\nprint(*linecache.cache, sep='\\n')"
    made = [name for name in run(code).splitlines() if name.startswith("<attrs generated")]
    assert not [name for name in made if "kafka_msgs.errors" in name or "kafka_msgs.messages" in name]
    # Before 25.4, attrs compiles each method by itself, so the classes count.
    assert len({name.split()[-1] for name in made if "kafka_msgs" in name}) <= 8


def test_importing_one_message_loads_that_message_alone() -> None:
    modules = loaded("from kafka_msgs import OffsetFetchRequest")
    assert ours(modules) == CORE | MACHINERY | {"kafka_msgs.messages.offset_fetch_request"}


def test_using_one_message_loads_no_other() -> None:
    modules = loaded("from kafka_msgs import NoOpRecord\nNoOpRecord.decode(NoOpRecord().encode(0), 0).to_json(0)")
    assert message_modules(modules) == {"kafka_msgs.messages.no_op_record"}
    assert modules.isdisjoint(OPTIONAL)


def test_payloads_load_the_headers_and_what_they_carry() -> None:
    modules = loaded(
        "from kafka_msgs.wire import decode_request\ndecode_request(bytes.fromhex('0012000000000007ffff'))"
    )
    assert message_modules(modules) == {
        "kafka_msgs.messages.api_versions_request",
        "kafka_msgs.messages.api_versions_response",  # wire.negotiation reads and caps it
        "kafka_msgs.messages.request_header",
        "kafka_msgs.messages.response_header",
    }


def test_drafts_are_loaded_only_when_asked_for() -> None:
    everything = "import kafka_msgs\nlist(kafka_msgs.iter_message_classes())"
    assert not any(name.startswith("kafka_msgs.drafts") for name in loaded(everything))
    draft = ours(loaded("from kafka_msgs.drafts.kip_88 import OffsetFetchRequest"))
    assert {name for name in draft if name.startswith("kafka_msgs.drafts.kip")} == {
        "kafka_msgs.drafts.kip_88",
        "kafka_msgs.drafts.kip_88._index",
        "kafka_msgs.drafts.kip_88.offset_fetch_request",
    }


def test_listing_the_names_of_messages_loads_none() -> None:
    modules = loaded("from kafka_msgs import messages\nassert 'OffsetFetchRequest' in dir(messages)")
    assert message_modules(modules) == set()


BLOCKED = f"""
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ImportError(f"{{name}} is blocked")

sys.meta_path.insert(0, Block())
"""


def test_the_library_works_without_any_extra() -> None:
    printed = run(
        BLOCKED
        + """
import kafka_msgs
from kafka_msgs import wire
from kafka_msgs.testing.random_values import random_message
from random import Random

count = 0
for cls in kafka_msgs.iter_message_classes():
    message = random_message(cls, cls.INFO.versions.highest, Random(1), unknown_tags=False)
    data = message.encode(cls.INFO.versions.highest)
    assert cls.decode(data, cls.INFO.versions.highest) == message
    assert cls.from_json(message.to_json(cls.INFO.versions.highest), cls.INFO.versions.highest) == message
    count += 1
payload = wire.encode_request(kafka_msgs.OffsetFetchRequest(), 2, correlation_id=1)
assert wire.decode_request(payload).message == kafka_msgs.OffsetFetchRequest()
print(count)
"""
    )
    assert int(printed) == len(_index.MODULES)


DEFINITION = '{"name": "Ping", "type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": []}'


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        (f"import kafka_msgs\nkafka_msgs.compile_schema({DEFINITION!r})", "generator"),
        ("import kafka_msgs.testing.strategies", "testing"),
    ],
)
def test_a_feature_whose_extra_is_missing_says_which(code: str, extra: str) -> None:
    blocked = BLOCKED.replace("'kafka_msgs_generator', ", "")
    result = subprocess.run(
        [sys.executable, "-c", blocked + code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("kafka_msgs.errors.MissingExtraError: ")
    assert f"pip install 'kafka-msgs[{extra}]'" in last


@pytest.mark.parametrize(("backend", "expected"), [("auto", BACKENDS[0]), *((name, name) for name in BACKENDS)])
def test_the_environment_chooses_the_executor(backend: str, expected: str) -> None:
    code = (
        f"import os\nos.environ['KAFKA_MSGS_BACKEND'] = {backend!r}\nimport kafka_msgs\n"
        "print(kafka_msgs.backend(), kafka_msgs.OffsetFetchRequest(topics=None).encode(2).hex())"
    )
    assert run(code).split() == [expected, "0000ffffffff"]


def test_an_executor_that_does_not_exist() -> None:
    code = "import os\nos.environ['KAFKA_MSGS_BACKEND'] = 'fortran'\nimport kafka_msgs"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.stderr.strip().splitlines()[-1] == (
        f"ImportError: KAFKA_MSGS_BACKEND=fortran: the backends here are auto, {', '.join(BACKENDS)}"
    )
