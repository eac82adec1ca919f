"""Emits the Python function that encodes one plan. It packs parts and joins them once.

* Adjacent fixed-size values are packed by one ``pack``, together with the first byte (or the int16, int32) of the
  length that follows them.
* A struct that has only fixed-size values and arrays of such values is packed in one call, by a function for the
  lengths of its arrays. A small table keeps these functions: most elements of a large message share a few shapes.

For a value that does not fit, the function only raises ``MalformedError`` or a built-in Python exception. ``reference``
then finds the exact error.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from struct import Struct as PackedStruct
from typing import Any

from kafka_msgs.codec.ops import FIXED, MAX_LENGTH, MAX_STRING, MAX_TAG, MAX_TAGS, Op
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import AbsentField, Plan, Step, StructPlan, WireValue
from kafka_msgs.codec.source_writer import MalformedError, Source
from kafka_msgs.codec.value_checks import (
    compile_differs,
    exact_bytes,
    exact_items,
    exact_struct,
    is_any_of,
    is_set,
    uuid_bytes,
)
from kafka_msgs.primitives import write_uvarint

__all__ = ["encode_source"]

_INLINE_LEVELS = 8
_MAX_SHAPES = 256
_ONE_BYTE_LENGTH = 127
"""From this length on, a compact length takes more than one byte."""


def encode_source(plan: Plan, options: CodecOptions) -> Source:
    """Return the source of ``encode(message)`` -> bytes."""
    emitter = _Emitter(options)
    with emitter.source.block("def encode(message):"):
        emitter.source.line("parts = []")
        emitter.source.line("put = parts.append")
        emitter.struct(plan.root, "message")
        emitter.flush()
        emitter.source.line('return b"".join(parts)')
    emitted = 0
    while emitted < len(emitter.deferred):
        name, struct = list(emitter.deferred.values())[emitted]
        with emitter.source.block(f"def {name}(item, put):"):
            emitter.struct(struct, "item")
            emitter.flush()
        emitted += 1
    return emitter.source


class _Emitter:
    def __init__(self, options: CodecOptions) -> None:
        self.source = Source()
        self.options = options
        self.run: list[tuple[str, str]] = []
        self.put = "put"
        self.level = 0
        self.deferred: dict[type[Any], tuple[str, StructPlan]] = {}
        self.source.constants |= {
            "EMPTY": (),
            "exact_bytes": exact_bytes,
            "exact_items": exact_items,
            "exact_struct": exact_struct,
            "is_set": is_set,
            "shape": shape,
            "unknown_tags": unknown_tags,
            "utf8": str.encode,
            "uuid_bytes": uuid_bytes,
            "uvarint": write_uvarint,
        }

    # Runs of fixed-size values

    def fixed(self, code: str, expression: str) -> None:
        """Add a fixed-size value to the run that will be packed at the next ``flush``."""
        self.run = [*self.run, (code, expression)]

    def flush(self, *extra: tuple[str, str]) -> None:
        """Pack the run so far, ``extra`` values included."""
        run = [*self.run, *extra]
        if run:
            codes, expressions = zip(*run, strict=True)
            pack, _ = self.source.struct_method("pack", "".join(codes))
            self.source.line(f"{self.put}({pack}({', '.join(expressions)}))")
        if not extra:
            self.run = []

    def length(self, value: WireValue, length: str) -> None:
        """Write a length; ``length`` names the variable holding it."""
        if not value.compact:
            self.fixed("h" if value.op is Op.STRING else "i", length)
            self.flush()
            return
        with self.source.block(f"if {length} < {_ONE_BYTE_LENGTH}:"):
            self.flush(("B", f"{length} + 1"))
        with self.source.block("else:"):
            with self.source.block(f"if {length} > {MAX_STRING if value.op is Op.STRING else MAX_LENGTH}:"):
                self.source.line("raise MalformedError")
            self.flush_keeping()
            self.source.line(f"{self.put}(uvarint({length} + 1))")
        self.run = []

    def flush_keeping(self) -> None:
        run = self.run
        self.flush()
        self.run = run

    # Structs

    def struct(self, plan: StructPlan, item: str) -> None:
        if self.level == _INLINE_LEVELS:
            self.call(plan, item)
            return
        self.level += 1
        cls = self.source.constant(plan.cls.__name__, plan.cls)
        with self.source.block(f"if type({item}) is not {cls}:"):
            self.source.line(f"{item} = exact_struct({cls}, {item})")
        for absent in plan.absent:
            if not absent.ignorable:
                found = self.variable(f"{item}.{absent.attribute}", absent.attribute)
                self.guard(self.differs(absent, found))
        if _shapely(plan):
            self.shaped(plan, item)
        else:
            for step in plan.steps:
                self.value(step.value, f"{item}.{step.attribute}", step.attribute)
            self.end_of_struct(plan, item)
        self.level -= 1

    def end_of_struct(self, plan: StructPlan, item: str) -> None:
        if plan.flexible:
            self.tag_section(plan, item)
        else:
            unknown = self.variable(f"{item}.unknown_tagged_fields", "unknown")
            self.guard(f"{unknown} is not EMPTY and is_set({unknown})")

    def call(self, plan: StructPlan, item: str) -> None:
        self.flush()
        if plan.cls not in self.deferred:
            self.deferred[plan.cls] = self.source.name(f"encode_{plan.cls.__name__}_"), plan
        name, _ = self.deferred[plan.cls]
        self.source.line(f"{name}({item}, {self.put})")

    def guard(self, test: str) -> None:
        with self.source.block(f"if {test}:"):
            self.source.line("raise MalformedError")

    def differs(self, field: Step | AbsentField, item: str) -> str:
        """Return the test whether a variable with a field's value differs from the default, as defined by
        ``value_checks.differs_from_default``.
        """
        default = field.default
        if default is None:
            return f"{item} is not None"
        if field.value.op is Op.BOOL:
            return f"{item} is not {default!r}"
        if field.value.op is Op.ARRAY:
            return f"{item} is not EMPTY and is_set({item})"
        slowly = f"{self.source.constant(f'differs_{field.attribute}', compile_differs(field))}({item})"
        if field.value.op in (Op.STRUCT, Op.UUID):
            return f"{item} is not {self.source.constant(f'default_{field.attribute}', default)} and {slowly}"
        if type(default) in (int, str, bytes):
            return f"({item} != {default!r} if type({item}) is {type(default).__name__} else {slowly})"
        return slowly

    # Values

    def value(self, value: WireValue, expression: str, stem: str) -> None:
        if value.op in FIXED:
            self.fixed_value(value.op, expression, stem)
            return
        item = self.variable(expression, stem)
        if not value.nullable:
            self.content(value, item)
            return
        run = self.run
        with self.source.block(f"if {item} is None:"):
            self.null(value)
        self.run = run
        with self.source.block("else:"):
            if value.op is Op.STRUCT:
                self.fixed("b", "1")
            self.content(value, item)
            self.flush()

    def variable(self, expression: str, stem: str) -> str:
        """Return a variable holding an expression's value."""
        if expression.isidentifier():
            return expression
        name = self.source.name(stem)
        self.source.line(f"{name} = {expression}")
        return name

    def null(self, value: WireValue) -> None:
        if value.compact:
            self.fixed("b", "0")
        else:
            self.fixed({Op.STRUCT: "b", Op.STRING: "h"}.get(value.op, "i"), "-1")
        self.flush()

    def fixed_value(self, op: Op, expression: str, stem: str) -> None:
        code, _ = FIXED[op]
        if op is Op.BOOL:
            item = self.variable(expression, stem)
            self.guard(f"{item} is not True and {item} is not False")
            expression = item
        elif op is Op.UUID:
            item = self.variable(expression, stem)
            expression = f"uuid_bytes({item})"
        self.fixed(code, expression)

    def content(self, value: WireValue, item: str) -> None:
        """Write a value that is not null and not of fixed size."""
        if value.op is Op.STRUCT:
            self.struct(value.inner, item)
        elif value.op is Op.ARRAY:
            self.array(value, item)
        else:
            self.sized(value, item)

    def sized(self, value: WireValue, item: str) -> None:
        raw, length = self.source.name("raw"), self.source.name("n")
        if value.op is Op.STRING:
            errors = self.options.utf8_errors
            arguments = item if errors == "strict" else f'{item}, "utf-8", "{errors}"'
            self.source.line(f"{raw} = utf8({arguments})")
        else:
            self.source.line(f"{raw} = {item} if type({item}) is bytes else exact_bytes({item})")
        self.source.line(f"{length} = len({raw})")
        self.length(value, length)
        self.source.line(f"{self.put}({raw})")

    def array(self, value: WireValue, item: str) -> None:
        length = self.source.name("n")
        self.array_guard(item)
        self.source.line(f"{length} = len({item})")
        self.length(value, length)
        if value.item.op in FIXED and value.item.op not in (Op.BOOL, Op.UUID):
            self.source.line(f'{self.put}(shape("{FIXED[value.item.op][0]}", {length})(*{item}))')
            return
        element = self.source.name("element")
        with self.source.block(f"for {element} in {item}:"):
            self.value(value.item, element, "item")
            self.flush()

    def array_guard(self, item: str) -> None:
        with self.source.block(f"if type({item}) is not tuple:"):
            self.source.line(f"{item} = exact_items({item})")

    # Structs of fixed-size values and arrays of them

    def shaped(self, plan: StructPlan, item: str) -> None:
        """Pack the complete struct at once, with a function built for the lengths of its arrays."""
        arrays = {
            step: (self.source.name(step.attribute), self.source.name("n")) for step in plan.steps if _array(step)
        }
        for step, (array, length) in arrays.items():
            self.source.line(f"{array} = {item}.{step.attribute}")
            self.array_guard(array)
            self.source.line(f"{length} = len({array})")
        codes, arguments = self.shape_of(plan, item, arrays)
        lengths = [length for _, length in arrays.values()]
        unknown = self.source.name("unknown")
        self.source.line(f"{unknown} = {item}.unknown_tagged_fields")
        self.flush()
        shapes, pack = self.source.constant(f"shapes_{plan.cls.__name__}", {}), self.source.name("pack")
        key = f"({''.join(f'{length}, ' for length in lengths)})"
        self.source.line(f"{pack} = {shapes}.get({key}) or shape_for({shapes}, {codes!r}, {key})")
        with self.source.block(f"if {pack} and {unknown} is EMPTY:"):
            self.source.line(f"{self.put}({pack}({', '.join(arguments)}))")
        self.source.constants["shape_for"] = shape_for
        with self.source.block("else:"):
            for step in plan.steps:
                self.value(step.value, f"{item}.{step.attribute}", step.attribute)
            self.end_of_struct(plan, item)
            self.flush()

    def shape_of(
        self, plan: StructPlan, item: str, arrays: dict[Step, tuple[str, str]]
    ) -> tuple[tuple[str, ...], list[str]]:
        """Return the format (array codes lead with ``*``) and the arguments of the struct's ``pack``."""
        codes: list[str] = []
        arguments: list[str] = []
        for step in plan.steps:
            if step in arrays:
                array, length = arrays[step]
                codes += ["B" if step.value.compact else "i", f"*{FIXED[step.value.item.op][0]}"]
                arguments += [f"{length} + 1" if step.value.compact else length, f"*{array}"]
            else:
                codes.append(FIXED[step.value.op][0])
                arguments.append(f"{item}.{step.attribute}")
        if plan.flexible:
            codes.append("B")
            arguments.append("0")
        return tuple(codes), arguments

    # The tag section

    def tag_section(self, plan: StructPlan, item: str) -> None:
        unknown = self.source.name("unknown")
        self.source.line(f"{unknown} = {item}.unknown_tagged_fields")
        declared = self.source.constant("declared_tags", plan.declared_tags)
        tags = self.tagged_parts(plan, item) if plan.tagged else ""
        test = f"{tags} or {unknown} is not EMPTY" if tags else f"{unknown} is not EMPTY"
        with self.source.block(f"if {test}:"):
            self.flush_keeping()
            self.source.line(f"{self.put}(unknown_tags({tags or '[]'}, {unknown}, {declared}))")
        with self.source.block("else:"):
            self.flush(("B", "0"))
        self.run = []

    def tagged_parts(self, plan: StructPlan, item: str) -> str:
        """Emit the writing of the known tagged fields that are set, each a part of the list whose name is returned."""
        tags = self.source.name("tags")
        self.source.line(f"{tags} = []")
        outer_run, outer_put, self.run = self.run, self.put, []
        for step in plan.tagged:
            tagged = self.source.name(step.attribute)
            self.source.line(f"{tagged} = {item}.{step.attribute}")
            with self.source.block(f"if {self.differs(step, tagged)}:"):
                content = self.source.name("content")
                self.put = self.source.name("put")
                self.source.line(f"{content} = []")
                self.source.line(f"{self.put} = {content}.append")
                self.value(step.value, tagged, step.attribute)
                self.flush()
                self.source.line(f'{content} = b"".join({content})')
                header = f"{write_uvarint(step.tag or 0)!r} + uvarint(len({content}))"
                self.source.line(f"{tags}.append({header} + {content})")
        self.run, self.put = outer_run, outer_put
        return tags


def _array(step: Step) -> bool:
    """Return whether a field is an array that ``pack`` accepts as arguments."""
    value = step.value
    return (
        value.op is Op.ARRAY
        and not value.nullable
        and value.item.op in FIXED
        and value.item.op not in (Op.BOOL, Op.UUID)
    )


def _shapely(plan: StructPlan) -> bool:
    """Return whether a struct can be packed at once: fixed-size values, at least one array of them, and no tags."""
    plain = [step.value.op in FIXED and step.value.op not in (Op.BOOL, Op.UUID) for step in plan.steps]
    arrays = [_array(step) for step in plan.steps]
    return any(arrays) and all(map(max, plain, arrays)) and not plan.tagged


# Functions called by the generated code


def shape(code: str, count: int) -> Callable[..., bytes]:
    """Return the ``pack`` of ``count`` values of one code."""
    return _shapes.get((code, count)) or _remember(_shapes, (code, count), f">{count}{code}")


def shape_for(shapes: dict[Any, Any], codes: tuple[str, ...], lengths: tuple[int, ...]) -> Callable[..., bytes] | None:
    """Return the ``pack`` of a struct whose arrays have these lengths, and keep it in ``shapes``.

    None when an array is too long for a compact length of one byte.
    """
    if max(lengths) >= _ONE_BYTE_LENGTH:
        return None
    counts = iter(lengths)
    layout = "".join(f"{next(counts)}{code[1:]}" if code[0] == "*" else code for code in codes)
    return _remember(shapes, lengths, f">{layout}")


_shapes: dict[Any, Callable[..., bytes]] = {}


def _remember(shapes: dict[Any, Any], key: Any, layout: str) -> Callable[..., bytes]:
    if len(shapes) >= _MAX_SHAPES:
        shapes.clear()
    shapes[key] = pack = PackedStruct(layout).pack
    return pack


def unknown_tags(parts: list[bytes], unknown: Any, declared: frozenset[int]) -> bytes:
    """Return a tag section: the known fields' ``parts``, then the unknown ones, which always have higher numbers."""
    previous = -1
    for pair in exact_items(unknown):
        if not is_any_of(pair, tuple):
            raise MalformedError
        tag, raw = exact_items(pair)
        if not is_any_of(tag, int):
            raise MalformedError
        tag = index(tag)
        if not previous < tag <= MAX_TAG or tag in declared:
            raise MalformedError
        previous = tag
        raw = exact_bytes(raw)
        parts.append(write_uvarint(tag) + write_uvarint(len(raw)) + raw)
    if len(parts) > MAX_TAGS:
        raise MalformedError
    return write_uvarint(len(parts)) + b"".join(parts)
