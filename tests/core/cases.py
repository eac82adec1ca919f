"""``python -m tests.core.cases``: arguments that used to crash the process or to write outside of buffers.

Each case is a function. The process prints the name of each case before running it, and ``done`` at the end.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kafka_msgs import OffsetFetchRequest
from kafka_msgs._core import extension
from kafka_msgs.records import BatchBuilder, Record
from tests.core.models import codec_arguments, plain_class

__all__ = ["CASES"]

CASES: Final[list[Callable[[], object]]] = []
"""All cases, in the order of this file."""

_SKIP, _INT32, _STRING, _UUID, _ARRAY, _STRUCT = 14, 3, 9, 8, 12, 13
_FIXED, _TEXT, _LIST, _TABLE = 1, 2, 3, 4
_COLUMNS: Final = ((_TABLE, 0, 3), (_FIXED, 4, 1), (_TEXT, 0, 1))
_ROWS: Final = (4, False, 0, 1, None, (0).to_bytes(4, "little") + (40).to_bytes(4, "little"), bytes(40))


def case(function: Callable[[], object]) -> Callable[[], object]:
    """Register a case."""
    CASES.append(function)
    return function


def refused(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function that must raise an exception for invalid arguments."""
    try:
        function(*arguments)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return
    raise AssertionError("accepted")


def op(code: int, place: int, *, size: int = 1, item: int | None = None, sub: int = -1) -> tuple[Any, ...]:
    """Return an op of a column program."""
    return code, 0, code if item is None else item, 0, size, sub, 0, None, False, place, -1


def program(*steps: tuple[Any, ...], columns: Any = _COLUMNS, allocate: Any = bytearray, more: Any = ()) -> Any:
    """Return a program of one struct, optionally with more structs."""
    structs = ((0, 0, False, steps, (), (), ()), *more)
    return extension.ColumnProgram(columns, structs, ((0, False, 0),), False, 100, 1000, allocate)


@case
def a_field_of_fixed_size_has_no_column() -> None:
    refused(program, op(_INT32, 1, size=4), op(_STRING, 2), op(_INT32, 0, size=4))


@case
def skipped_bytes_are_more_than_a_number_holds() -> None:
    skips = [op(_SKIP, 0, size=2**62, item=0)] * 2
    refused(program, *skips, op(_INT32, 1, size=4), op(_STRING, 2))


@case
def a_column_is_filled_257_times() -> None:
    refused(program, *[op(_INT32, 1, size=4)] * 257, op(_STRING, 2))


@case
def structs_contain_themselves_or_are_too_deep() -> None:
    inner = tuple((-1, 0, False, (op(_STRUCT, 0, sub=number + 2),), (), (), ()) for number in range(100_000))
    end = (-1, 0, False, (), (), (), ())
    refused(partial(program, more=(*inner, end)), op(_INT32, 1, size=4), op(_STRING, 2), op(_STRUCT, 0, sub=1))
    structs, *rest = codec_arguments(OffsetFetchRequest, 8)
    cls, unknown, _, partial_, *_ = structs[0]
    field = (_STRUCT, 0, _STRUCT, 0, 1, 0, 0, None, False, OffsetFetchRequest.__dict__["group_id"], 0)
    refused(extension.Codec, ((cls, unknown, False, partial_, (field,), (), (), ()),), *rest)


@case
def a_budget_is_negative() -> None:
    structs, _, _, *rest = codec_arguments(OffsetFetchRequest, 8)
    refused(extension.Codec, structs, -(2**63), 5, *rest)
    refused(extension.ColumnProgram, _COLUMNS, (), (), False, 5, -(2**63), bytearray)


@case
def memory_gets_smaller() -> None:
    """Allocate a smaller second buffer for a column: it has the requested size, and not the size of the first one."""
    sizes = iter([1 << 20] * 5)
    made = program(op(_INT32, 1, size=4), op(_STRING, 2), allocate=lambda size: bytearray(max(size, next(sizes, 0))))
    rows, row = 4000, bytes(4) + (10).to_bytes(2, "big") + b"0123456789"
    ends = b"".join((len(row) * number).to_bytes(4, "little") for number in range(rows + 1))
    made.decode(((4, False, 0, rows, None, ends, row * rows),), 0, rows)


@case
def memory_lies_between_two_numbers() -> None:
    refused(
        program(
            op(_INT32, 1, size=4), op(_STRING, 2), allocate=lambda size: memoryview(bytearray(size + 1))[1:]
        ).decode,
        (_ROWS,),
        0,
        1,
    )


@case
def memory_changes_while_columns_are_filled() -> None:
    """Overwrite earlier buffers in the allocator: first the offsets of a list's strings, then everything."""
    columns = ((_TABLE, 0, 4), (_LIST, 0, 2), (_TEXT, 36, 1), (_TEXT, 0, 1))
    row = b"".join(((9).to_bytes(4, "big"), bytes(16 * 9), (300).to_bytes(2, "big"), b"x" * 300))
    rows = [row, row[:-1]] * 40
    ends = [sum(map(len, rows[:number])) for number in range(len(rows) + 1)]
    offsets = b"".join(end.to_bytes(4, "little") for end in ends)
    column = (4, False, 0, len(rows), None, offsets, b"".join(rows))
    for spoilt in (slice(-1, None), slice(None)):
        made: list[bytearray] = []
        allocate = partial(_spoiling, made, spoilt)
        steps = (op(_ARRAY, 1, size=16, item=_UUID), op(_STRING, 3))
        program(*steps, columns=columns, allocate=allocate).decode((column,), 0, len(rows))


def _spoiling(made: list[bytearray], spoilt: slice, size: int) -> bytearray:
    for each in made[spoilt] if size > 36 * 8 and size % 36 == 0 else ():
        each[:] = b"\x7f" * len(each)
    made.append(bytearray(size))
    return made[-1]


@case
def two_fields_have_one_slot() -> None:
    class Storage(extension.RecordStorage):
        __slots__ = ()

    refused(extension.Layout, Storage, (("timestamp", None),) * 6)
    refused(extension.Layout, plain_class(), (("\ud800", None), ("first", None)))


@case
def records_have_a_dictionary() -> None:
    class Open(extension.RecordStorage):
        pass

    refused(extension.bind_records, Open, Open, len)
    refused(extension.bind_records, Record, extension.PlacedRecordStorage, len)


@case
def a_method_decodes_nothing() -> None:
    refused(extension.Method, len, 1, ("cls", None, "version", None, "options"))
    refused(extension.Method, len, 7, ("cls", "data", "version", None, "options"))


@case
def a_whole_plan_changes_fields() -> None:
    codec = extension.Codec(*codec_arguments(OffsetFetchRequest, 8))
    data = OffsetFetchRequest(groups=()).encode(8)
    assert codec.patch(data, 0, ()) == data


@case
def an_object_that_no_class_statement_made() -> None:
    _, *rest = codec_arguments(OffsetFetchRequest, 8)
    for cls in (Record, OffsetFetchRequest):
        of_record = vars(extension.RecordStorage)["key"]
        unknown = (of_record, OffsetFetchRequest.unknown_tagged_fields)[cls is OffsetFetchRequest]
        made = partial(extension.Codec, ((cls, unknown, False, False, (), (), (), ()),), *rest)
        refused(made) if cls is Record else made()


@case
def who_unpacks_or_sums_keeps_what_it_saw() -> None:
    kept: list[memoryview] = []
    builder = BatchBuilder()
    builder.append(b"key", b"value" * 100)
    data = bytearray(builder.build())
    data[22] = 1
    columns = extension.RecordColumns((0, 3), bytearray, False)
    columns.append(data, 0, len(data), 2**63 - 1, 100, 100, 1000, lambda codec, view: kept.append(view))

    def checksum(view: memoryview) -> int:
        kept.append(view)
        return 0

    summed: Any = data
    extension.count_batches(summed, 0, len(data), checksum)
    expected = [bytes(view) for view in kept]
    del data, columns
    gc.collect()
    assert len(kept) == 2
    assert [bytes(view) for view in kept] == expected


@case
def columns_are_finished_in_the_middle() -> None:
    builder = BatchBuilder()
    builder.append(b"key", b"value")
    data = bytearray(builder.build())
    data[22] = 1
    columns = extension.RecordColumns((0, 3), bytearray, False)
    columns.append(data, 0, len(data), 0, 100, 100, 1000, lambda *given: refused(columns.finish))


@case
def a_batch_gets_the_header_of_others() -> None:
    collector = extension.RecordAppender(0, 9, -(2**63), None)
    collector.append(b"key", b"value", timestamp=5)
    refused(collector.sealed, bytes(61))


if __name__ == "__main__":
    chosen = sys.argv[1:]
    for each in CASES:
        if not chosen or each.__name__ in chosen:
            print(each.__name__, flush=True)
            each()
    print("done")
