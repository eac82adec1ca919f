"""The generated modules: their text, and that it is equivalent Python.

``golden`` contains hand-written definitions, each with its generated module. ``REWRITE_GOLDEN=1`` rewrites the modules.
"""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.message import Message
from kafka_msgs.schema import FieldInfo, MessageInfo, fields
from kafka_msgs.versions import VersionRange
from kafka_msgs_generator import source_formatting
from kafka_msgs_generator.compiler import Compiled, CompileOptions, compile_file, compile_paths
from kafka_msgs_generator.emit import message_module
from kafka_msgs_generator.ir import Field, NewStruct, Struct
from kafka_msgs_generator.ir import Message as MessageDefinition
from kafka_msgs_generator.naming import attribute_name
from tests.support.small_definitions import compiled, data

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))


class Sentences:
    """Documents everything, at length."""

    def message(self, name: str, versions: VersionRange) -> str | None:
        """Describe the message."""
        return f"What {name} is for, in a sentence that is long enough to be " + "wrapped " * 12 + "twice."

    def field(self, message_name: str, path: tuple[str, ...], struct: str, versions: VersionRange) -> str | None:
        """Describe the field."""
        return f'The field {".".join(path)} of {struct}: a \\ backslash, """ quotes and "a quoted end"'


def golden(path: Path) -> Compiled:
    """Compile a golden definition."""
    return compile_file(path, CompileOptions(), "golden")


def golden_module(name: str, draft: str | None = None) -> ModuleType:
    """Return the module of a golden definition."""
    item = golden(GOLDEN[0].with_name(f"{name}.json"))
    return executed(message_module(item.message, item.source, draft=draft))


def executed(text: str) -> ModuleType:
    """Execute the text of a module."""
    module = ModuleType("generated")
    exec(compile(text, "<generated>", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_definition_becomes_this_module(path: Path) -> None:
    item = golden(path)
    text = message_module(item.message, item.source)
    expected = path.with_suffix(".txt")
    if os.environ.get("REWRITE_GOLDEN"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_generated_class_says_what_its_definition_says(path: Path) -> None:
    ir = golden(path).message
    module = executed(message_module(ir, "golden"))
    cls = getattr(module, ir.name)
    assert issubclass(cls, Message)
    assert ir.name == cls.INFO.name
    assert (cls.INFO.kind, cls.INFO.api_key, cls.INFO.versions) == (ir.kind, ir.api_key, ir.versions)
    assert (cls.INFO.flexible, cls.INFO.deprecated, cls.INFO.listeners) == (ir.flexible, ir.deprecated, ir.listeners)
    assert dict(cls.INFO.errors) == {name: str(versions) for name, versions in ir.errors.items()}
    assert cls.INFO.latest_version_unstable == ir.unstable
    structs: tuple[Struct | MessageDefinition, ...] = (*ir.structs, ir)
    for struct in structs:
        described = fields(getattr(module, struct.name))
        assert [info.name for info in described] == [field.name for field in struct.fields]
        for info, field in zip(described, struct.fields, strict=True):
            assert_described(info, field, module)


def assert_described(info: FieldInfo, field: Field, module: ModuleType) -> None:
    """Check that the field of a class matches its definition."""
    same = (
        "name",
        "attribute",
        "versions",
        "nullable",
        "tag",
        "tagged",
        "flexible",
        "ignorable",
        "map_key",
        "zero_copy",
    )
    assert [getattr(info, name) for name in same] == [getattr(field, name) for name in same]
    assert (info.type, info.entity_type) == (str(field.type), field.entity)
    assert info.struct is (getattr(module, field.type.element) if field.type.is_struct else None)
    default = getattr(module, field.default.name)() if isinstance(field.default, NewStruct) else field.default
    assert repr(info.default) == repr(default)


def test_a_struct_field_starts_as_a_fresh_struct() -> None:
    module = golden_module("NestedRequest")
    assert module.NestedRequest().other == module.TopicPartitions(topic="", partitions=())


def test_a_draft_says_so() -> None:
    module = golden_module("EmptyKey", draft='A "draft"')
    assert module.EmptyKey.INFO.draft == 'A "draft"'
    assert 'Draft: A "draft".' in (inspect.getdoc(module.EmptyKey) or "")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_documentation_stands_below_what_it_documents(path: Path) -> None:
    item = compile_file(path, CompileOptions(documentation=Sentences()), "golden")
    text = message_module(item.message, item.source)
    assert max(len(line) for line in text.splitlines()) <= source_formatting.WIDTH
    tree = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    structs: tuple[Struct | MessageDefinition, ...] = (*item.message.structs, item.message)
    for struct in structs:
        body = tree[struct.name].body[1:]
        documented = {
            ast.unparse(first.target): " ".join(ast.literal_eval(second.value).split())
            for first, second in pairwise(body)
            if isinstance(first, ast.AnnAssign) and isinstance(second, ast.Expr)
        }
        assert set(documented) == {field.attribute for field in struct.fields}
        assert all("""a \\ backslash, \'\'\' quotes and "a quoted end\"""" in doc for doc in documented.values())


def test_generated_code_is_as_the_formatter_would_have_it(tmp_path: Path) -> None:
    for path in GOLDEN:
        for suffix, reading in (("plain", CompileOptions()), ("documented", CompileOptions(documentation=Sentences()))):
            text = message_module(compile_file(path, reading, "golden").message, "golden", draft="Title")
            (tmp_path / f"{path.stem.lower()}_{suffix}.py").write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--line-length",
        str(source_formatting.WIDTH),
        "--diff",
        ".",
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


def test_a_strange_file_name_stays_a_comment() -> None:
    text = message_module(golden(GOLDEN[0]).message, "defs/a\nraise SystemExit\n#.json")
    assert (
        text.splitlines()[0] == "# Generated by kafka-msgs-generator from defs/a?raise SystemExit?#.json; do not edit."
    )


def test_the_same_definitions_give_the_same_text() -> None:
    origins = [Path("message_defs/kafka/group-coordinator")]
    texts = [
        [message_module(item.message, item.source) for item in compile_paths(origins, CompileOptions(), partial=False)]
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


NAMES = st.from_regex(r"\A[A-Za-z][A-Za-z0-9]{0,12}\Z")
RESERVED = [name for name in dir(Message) if not name.startswith("_")]
CAMEL = [name.title().replace("_", "") for name in RESERVED]


@given(st.lists(NAMES | st.sampled_from([*CAMEL, "None", "lambda", "field", "UUID"]), unique_by=str.lower, max_size=8))
def test_any_field_names_make_a_working_class(names: list[str]) -> None:
    if len({attribute_name(name) for name in names}) < len(names):
        return
    text = data(", ".join(f'{{"name": "{name}", "type": "int32", "versions": "0+"}}' for name in names))
    cls = executed(message_module(compiled(text), "any")).Sample
    value = cls(**{attribute_name(name): number for number, name in enumerate(names)})
    assert cls.decode(value.encode(version=0), version=0) == value
    assert attrs.asdict(value)["unknown_tagged_fields"] == ()


def test_no_attribute_hides_what_a_message_offers() -> None:
    assert all(attribute_name(name) not in RESERVED for name in [*CAMEL, *RESERVED])
    assert isinstance(golden_module("ReservedNames").ReservedNames.INFO, MessageInfo)


@given(st.text() | st.binary() | st.integers() | st.floats(allow_nan=False) | st.uuids() | st.booleans() | st.none())
def test_a_literal_is_its_value(value: object) -> None:
    module = executed(
        f"from uuid import UUID\nfrom kafka_msgs.schema import ZERO_UUID\nvalue = {source_formatting.literal(value)}"
    )
    assert (module.value, type(module.value)) == (value, type(value))


def test_every_generated_message_is_found_in_its_module() -> None:
    from kafka_msgs.messages import API_KEYS, MODULES, ORIGINS

    origins = sorted(Path("message_defs/kafka").iterdir())
    living = {
        i.message.name: i for i in compile_paths(origins, CompileOptions(), partial=False) if not i.message.retired
    }
    assert set(MODULES) == set(living) == set(ORIGINS)
    assert API_KEYS["clients", "request", 9] == "OffsetFetchRequest"
    assert API_KEYS["group-coordinator", "coordinator-value", 1] == "OffsetCommitValue"
    assert len(API_KEYS) == sum(item.message.api_key is not None for item in living.values())
