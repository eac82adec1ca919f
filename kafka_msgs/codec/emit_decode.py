"""Emits the Python function that decodes one plan: straight-line source, inlined loops, no call per field.

Three rules make the function fast and still exact:

* Adjacent fixed-size values are read by one ``unpack_from``, together with the first byte (or the int16, int32) of the
  length that follows them.
* A slice past the end of the buffer is not checked immediately. It moves the position past the end, so the
  next read or the last check of the function fails. Every count is checked before its loop.
* Objects are filled in as instances of a plain twin class and then become the frozen class by assignment to
  ``__class__``, which costs a fraction of ``__init__``.

The function only raises ``MalformedError`` or a built-in Python exception. A traced variant then reads the same input
and returns the location where it stops. ``reference`` finds the exact error there.
"""

from __future__ import annotations

from struct import Struct as PackedStruct
from typing import Any
from weakref import WeakKeyDictionary

from kafka_msgs.codec.ops import FIXED, MAX_LENGTH, MAX_STRING, MAX_TAG, MAX_TAGS, Op
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan, StructPlan, WireValue
from kafka_msgs.codec.source_writer import MalformedError, Source
from kafka_msgs.primitives import read_uvarint, uuid_from_bytes

__all__ = ["decode_source"]

_INLINE_LEVELS = 8
"""Structs that are nested deeper than this become separate functions (CPython allows 20 nested blocks)."""

_TABLED = FIXED.keys() - {Op.UUID}
"""Element types that a single ``unpack_from`` converts to Python values."""

_SHORT = 33
"""Arrays of fewer than this many fixed-size elements are read by a function from a table."""

_unpackers: dict[tuple[str, bool], tuple[Any, ...]] = {}
_twins: WeakKeyDictionary[type[Any], type[Any]] = WeakKeyDictionary()


def decode_source(plan: Plan, options: CodecOptions, counted: bool, traced: bool = False) -> Source:
    """Return the source of ``decode(buf, pos)`` -> (message, position), or (buf, pos, elements, room) when counted.

    The ``traced`` form returns where reading stopped, as the fields of the reference's ``FaultLocation``, or None.
    """
    emitter = _Emitter(options, counted, traced)
    emitter.function("decode", plan.root)
    emitted = 0
    while emitted < len(emitter.deferred):
        name, struct = list(emitter.deferred.values())[emitted]
        emitter.function(name, struct)
        emitted += 1
    return emitter.source


def mutable_twin(cls: type[Any]) -> type[Any]:
    """Return a class of the same memory layout whose attributes can be assigned."""
    if cls not in _twins:
        plain = {name: getattr(object, name) for name in ("__init__", "__setattr__", "__delattr__")}
        _twins[cls] = type(f"_{cls.__name__}", cls.__bases__, {"__slots__": cls.__slots__, **plain})
    return _twins[cls]


def unpackers(code: str, compact: bool) -> tuple[Any, ...]:
    """Return ``unpack_from`` functions of a struct code, indexed by the length on the wire.

    A compact length is the count plus one, and 0 is null. The entry for null is None, so calling it fails.
    """
    if (code, compact) not in _unpackers:
        functions = [PackedStruct(f">{count}{code}").unpack_from for count in range(_SHORT)]
        _unpackers[code, compact] = (None, *functions) if compact else tuple(functions)
    return _unpackers[code, compact]


def build(source: Source, plan: StructPlan, values: dict[str, str]) -> str:
    """Emit the construction of one object from the expressions of its fields; return its variable."""
    result = source.name("o")
    source.line(f"{result} = {source.constant(f'_{plan.cls.__name__}', mutable_twin(plan.cls))}()")
    absent = {absent.attribute: literal(source, absent.attribute, absent.default) for absent in plan.absent}
    for attribute, value in ({"unknown_tagged_fields": "()"} | absent | values).items():
        source.line(f"{result}.{attribute} = {value}")
    source.line(f"{result}.__class__ = {source.constant(plan.cls.__name__, plan.cls)}")
    return result


def literal(source: Source, attribute: str, default: Any) -> str:
    """Return the expression of a default value."""
    if default is None or default == () or isinstance(default, bool | int | str | bytes):
        return repr(default)
    return source.constant(f"default_{attribute}", default)


class _Emitter:
    def __init__(self, options: CodecOptions, counted: bool, traced: bool) -> None:
        self.source = Source()
        self.options = options
        self.counted = counted
        self.traced = traced
        self.trail: list[int | str] = []
        self.run: list[tuple[str, str]] = []
        self.level = 0
        self.deferred: dict[type[Any], tuple[str, StructPlan]] = {}
        self.source.constants |= {"uvarint": read_uvarint, "uuid": uuid_from_bytes, "unknown_tags": unknown_tags}

    # Runs of fixed-size values

    def fixed(self, code: str, stem: str) -> str:
        """Add a fixed-size value to the run that will be read at the next ``flush``; return its variable."""
        name = self.source.name(stem)
        self.run.append((code, name))
        return name

    def flush(self) -> None:
        if not self.run:
            return
        codes, names = zip(*self.run, strict=True)
        self.run = []
        line = self.source.line
        if codes == ("B",):
            line(f"{names[0]} = buf[pos]")
            line("pos += 1")
            return
        unpack, size = self.source.struct_method("unpack_from", "".join(codes))
        line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {unpack}(buf, pos)")
        line(f"pos += {size}")
        for code, name in zip(codes, names, strict=True):
            if code == "16s":
                line(f"{name} = uuid({name})")

    def length(self, value: WireValue, stem: str) -> str:
        """Read a length and return its variable: the plain length, or length + 1 when compact."""
        code = "B" if value.compact else "h" if value.op is Op.STRING else "i"
        name = self.fixed(code, stem)
        self.flush()
        if value.compact:
            self.long_varint(name)
        return name

    def long_varint(self, name: str) -> None:
        with self.source.block(f"if {name} > 127:"):
            self.source.line(f"{name}, pos = uvarint(buf, pos - 1)")

    def spend(self, account: str, amount: str) -> None:
        """Charge the decode budget, in the counted form of the function."""
        if self.counted:
            self.source.line(f"{account} -= {amount}")
            with self.source.block(f"if {account} < 0:"):
                self.source.line("raise MalformedError")

    def trace(self, step: int | str) -> None:
        """Record the location in the traced form, unless values that begin before it are still to be read."""
        if not self.traced or self.run:
            return
        with self.source.block("if pos > end:"):
            self.source.line("raise MalformedError")
        budget = self.options.budget
        left = "elements, room" if self.counted else f"{budget.elements}, {budget.bytes}"
        trail = "".join(f"{each}, " for each in (*self.trail, step))
        self.source.line(f"location = ({trail}), pos, end, {left}")

    # Functions and structs

    def function(self, name: str, plan: StructPlan) -> None:
        account = ", elements, room" if self.counted else ""
        with self.source.block(f"def {name}(buf, pos{account}):"):
            self.source.line("end = len(buf)")
            if self.options.memoryview_records:
                self.source.line("view = memoryview(buf)")
            if self.traced and name == "decode":
                self.traced_body(plan)
                return
            result = self.struct(plan)
            with self.source.block("if pos > end:"):
                self.source.line("raise MalformedError")
            self.source.line(f"return {result}, pos{account}")

    def traced_body(self, plan: StructPlan) -> None:
        """Emit the body that returns the location where reading stops."""
        with self.source.block("try:"):
            self.struct(plan)
            self.trace(len(plan.steps))
        with self.source.block("except Exception:"):
            self.source.line("return location")
        self.source.line("return None")

    def struct(self, plan: StructPlan) -> str:
        if self.level == _INLINE_LEVELS:
            return self.call(plan)
        self.level += 1
        variables = {step.attribute: self.step(plan, index) for index, step in enumerate(plan.steps)}
        if plan.flexible:
            self.trace(len(plan.steps))
            variables |= self.tag_section(plan)
        self.flush()
        self.level -= 1
        return build(self.source, plan, variables)

    def step(self, plan: StructPlan, index: int) -> str:
        step = plan.steps[index]
        if not index or plan.steps[index - 1].value.op in (Op.ARRAY, Op.STRUCT):  # the reference reads others fast
            self.trace(index)
        self.trail.append(index)
        result = self.value(step.value, step.attribute)
        self.trail.pop()
        if self.traced and step.value.op is Op.STRUCT:
            self.flush()
        return result

    def call(self, plan: StructPlan) -> str:
        self.flush()
        if plan.cls not in self.deferred:
            self.deferred[plan.cls] = self.source.name(f"decode_{plan.cls.__name__}_"), plan
        name, _ = self.deferred[plan.cls]
        result = self.source.name("nested")
        account = ", elements, room" if self.counted else ""
        self.source.line(f"{result}, pos{account} = {name}(buf, pos{account})")
        return result

    # Values

    def value(self, value: WireValue, stem: str) -> str:
        if value.op in FIXED:
            return self.fixed(FIXED[value.op][0], stem)
        if value.op is Op.STRUCT:
            return self.nullable_struct(value, stem) if value.nullable else self.struct(value.inner)
        length = self.length(value, "n")
        result = self.source.name(stem)
        if not self.checks_itself(value):
            self.reject_bad_length(value, length)
        if value.nullable:
            with self.source.block(f"if {length} == {0 if value.compact else -1}:"):
                self.source.line(f"{result} = None")
            with self.source.block("else:"):
                self.content(value, length, result)
        else:
            self.content(value, length, result)
        return result

    def reject_bad_length(self, value: WireValue, length: str) -> None:
        lowest = (0 if value.compact else -1) + (not value.nullable)
        tests = [f"{length} < {lowest}"] if lowest or not value.compact else []
        if value.op is Op.STRING and value.compact:
            tests.append(f"{length} > {MAX_STRING + 1}")
        if tests:
            with self.source.block(f"if {' or '.join(tests)}:"):
                self.source.line("raise MalformedError")

    def checks_itself(self, value: WireValue) -> bool:
        """Return whether the table of ``fixed_array``, which has no entry for null, also checks the length."""
        return value.op is Op.ARRAY and value.compact and value.item.op in _TABLED

    def nullable_struct(self, value: WireValue, stem: str) -> str:
        marker = self.fixed("B" if value.compact else "b", "marker")
        self.flush()
        if value.compact:
            self.long_varint(marker)
        result = self.source.name(stem)
        null = f"not 0 < {marker} <= {MAX_LENGTH}" if value.compact else f"{marker} < 0"
        with self.source.block(f"if {null}:"):
            self.source.line(f"{result} = None")
        with self.source.block("else:"):
            self.source.line(f"{result} = {self.struct(value.inner)}")
        return result

    def content(self, value: WireValue, length: str, result: str) -> None:
        """Emit the code after a length that is neither null nor negative."""
        if value.op is Op.ARRAY:
            self.array(value, length, result)
            return
        stop = self.source.name("stop")
        self.source.line(f"{stop} = pos + {length}{' - 1' if value.compact else ''}")
        self.spend("room", f"{stop} - pos")
        if value.op is Op.STRING:
            errors = self.options.utf8_errors
            arguments = "" if errors == "strict" else f'"utf-8", "{errors}"'
            self.source.line(f"{result} = buf[pos:{stop}].decode({arguments})")
        else:
            buffer = "view" if value.zero_copy and self.options.memoryview_records else "buf"
            self.source.line(f"{result} = {buffer}[pos:{stop}]")
        self.source.line(f"pos = {stop}")

    def array(self, value: WireValue, length: str, result: str) -> None:
        if value.item.op in _TABLED:
            self.fixed_array(value, length, result)
            return
        if value.compact:
            self.source.line(f"{length} -= 1")
        with self.source.block(f"if {length} * {value.item.min_size} > end - pos:"):
            self.source.line("raise MalformedError")
        self.spend("elements", length)
        if value.item.op is Op.UUID:
            places = f"range(pos, pos + {length} * 16, 16)"
            self.source.line(f"{result} = tuple([uuid(buf[i : i + 16]) for i in {places}])")
            self.source.line(f"pos += {length} * 16")
        else:
            self.loop(value.item, length, result)

    def loop(self, item: WireValue, length: str, result: str) -> None:
        with self.source.block(f"if {length}:"):
            items, add = self.source.name("items"), self.source.name("add")
            self.source.line(f"{items} = []")
            self.source.line(f"{add} = {items}.append")
            index = self.source.name("index") if self.traced else "_"
            with self.source.block(f"for {index} in range({length}):"):
                if item.op is not Op.STRUCT:
                    self.trace(index)
                self.trail.append(index)
                element = self.value(item, "item")
                self.flush()
                self.trail.pop()
                self.source.line(f"{add}({element})")
            self.source.line(f"{result} = tuple({items})")
        with self.source.block("else:"):
            self.source.line(f"{result} = ()")

    def fixed_array(self, value: WireValue, length: str, result: str) -> None:
        """Read all elements by one ``unpack_from``, which refuses a count that the buffer cannot hold."""
        code, size = FIXED[value.item.op]
        table = self.source.constant(f"unpack_{code.replace('?', 't')}", unpackers(code, value.compact))
        self.source.constants["unpack_many"] = unpack_many
        count = f"{length} - 1" if value.compact else length
        self.source.line(
            f"{result} = {table}[{length}](buf, pos) if {length} < {_SHORT}"
            f' else unpack_many({count}, "{code}", buf, pos)'
        )
        self.source.line(f"pos += {length} * {size}{f' - {size}' if value.compact else ''}")
        self.spend("elements", count)

    # The tag section

    def tag_section(self, plan: StructPlan) -> dict[str, str]:
        """Emit the reading of a tag section; return the variables of the tagged fields."""
        count = self.fixed("B", "tags")
        self.flush()
        unknown = self.source.name("unknown")
        variables = {step.attribute: self.source.name(step.attribute) for step in plan.tagged}
        for step in plan.tagged:
            self.source.line(f"{variables[step.attribute]} = {literal(self.source, step.attribute, step.default)}")
        self.source.line(f"{unknown} = ()")
        with self.source.block(f"if {count}:"):
            self.long_varint(count)
            with self.source.block(f"if {count} > {MAX_TAGS}:"):
                self.source.line("raise MalformedError")
            if plan.tagged or self.counted:
                traced, self.traced = self.traced, False  # the reference reads a whole tag section
                self.tags(plan, count, unknown, variables)
                self.traced = traced
            else:
                inactive = self.source.constant("inactive_tags", plan.inactive_tags)
                self.source.line(f"{unknown}, pos = unknown_tags(buf, pos, {count}, {inactive})")
        return variables | {"unknown_tagged_fields": unknown}

    def tags(self, plan: StructPlan, count: str, unknown: str, variables: dict[str, str]) -> None:
        line, block = self.source.line, self.source.block
        kept, last, tag, size, stop = (self.source.name(stem) for stem in ("kept", "last", "tag", "size", "stop"))
        line(f"{kept} = []")
        line(f"{last} = -1")
        with block(f"for _ in range({count}):"):
            for name in (tag, size):
                line(f"{name} = buf[pos]")
                line("pos += 1")
                self.long_varint(name)
            line(f"{stop} = pos + {size}")
            with block(f"if not {last} < {tag} <= {MAX_TAG} or {stop} > end:"):
                line("raise MalformedError")
            line(f"{last} = {tag}")
            for step in plan.tagged:
                with block(f"if {tag} == {step.tag}:"):
                    result = self.value(step.value, step.attribute)
                    self.flush()
                    line(f"{variables[step.attribute]} = {result}")
                    with block(f"if pos != {stop}:"):
                        line("raise MalformedError")
                    line("continue")
            if plan.inactive_tags:
                with block(f"if {tag} in {self.source.constant('inactive_tags', plan.inactive_tags)}:"):
                    line("raise MalformedError")
            self.spend("elements", "1")
            self.spend("room", size)
            line(f"{kept}.append(({tag}, buf[pos:{stop}]))")
            line(f"pos = {stop}")
        line(f"{unknown} = tuple({kept})")


def unknown_tags(
    buffer: bytes, position: int, count: int, inactive: frozenset[int]
) -> tuple[tuple[tuple[int, bytes], ...], int]:
    """Read a tag section in which no tag is known; return the pairs of tag and bytes and the position after it."""
    kept = []
    last = -1
    end = len(buffer)
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        stop = position + size
        if not last < tag <= MAX_TAG or stop > end or tag in inactive:
            raise MalformedError
        last = tag
        kept.append((tag, buffer[position:stop]))
        position = stop
    return tuple(kept), position


def unpack_many(count: int, code: str, buffer: bytes, position: int) -> tuple[Any, ...]:
    """Read ``count`` values of one struct code; ``struct.error`` when the buffer ends first."""
    return PackedStruct(f">{count}{code}").unpack_from(buffer, position)
