"""Compilation of field paths to a partial plan: fields to read, fields to skip, and the positions of edits.

A path names attributes, such as ``brokers[].host``: ``[]`` stands for each element of an array. ``brokers[]`` is each
broker, and ``brokers`` the complete array. Executors run partial plans like plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from kafka_msgs.codec.plan import AbsentField, Plan, Step, StructPlan
from kafka_msgs.errors import OptionError, UnknownColumnError
from kafka_msgs.schema import FieldInfo, MessageStruct, fields
from kafka_msgs.suggestions import similar_names

__all__ = ["check_paths", "select_fields"]

ELEMENTS: Final = "[]"

_Tree: TypeAlias = "dict[str, _Tree | int]"
"""The paths below a field, by their next part, or the number of the path that ends here."""


def select_fields(plan: Plan, paths: Sequence[str]) -> Plan:
    """Return the partial plan that reads the fields of ``paths``; an edit has the number of its path.

    If no chosen field is tagged, the partial plan ends after the last chosen field. A path that the version lacks
    selects no field. See ``check_paths`` for the errors.
    """
    root = _part(plan.root, check_paths(plan.cls, plan.version, paths))
    if all(step.skipped for step in root.tagged):
        root = _shortened(root)
    return plan.replace(root=root)


def check_paths(cls: type[MessageStruct], version: int, paths: Sequence[str]) -> _Tree:
    """Return the tree of paths of a message.

    Raises ``UnknownColumnError`` for a path that no version has, and ``OptionError`` for a path within another one.
    """
    tree: _Tree = {}
    for number, path in enumerate(paths):
        if not path:
            raise _overlap(path)
        parts = path.replace(ELEMENTS, f".{ELEMENTS}").split(".")
        _check_path(cls, version, path, parts)
        _add(tree, path, parts, number)
    return tree


def _check_path(cls: type[MessageStruct], version: int, path: str, parts: Sequence[str]) -> None:
    known: dict[str, FieldInfo | None] = {field.attribute: field for field in fields(cls)}
    for part in parts:
        if part not in known:
            near = (ELEMENTS,) if ELEMENTS in known else similar_names(part, known)
            raise UnknownColumnError(source=f"{cls.INFO.name} v{version}", column=path, near=near)
        field = known[part]
        known = _below(field, part) if field else {}


def _below(field: FieldInfo, part: str) -> dict[str, FieldInfo | None]:
    """Return the possible next parts of a path, by name."""
    if field.is_array and part != ELEMENTS:
        return {ELEMENTS: field}
    return {each.attribute: each for each in fields(field.struct)} if field.struct else {}


def _add(tree: _Tree, path: str, parts: Sequence[str], number: int) -> None:
    below: _Tree | int = tree
    for part in parts[:-1]:
        below = below.setdefault(part, {}) if isinstance(below, dict) else below
    if not isinstance(below, dict) or parts[-1] in below:
        raise _overlap(path)
    below[parts[-1]] = number


def _overlap(path: str) -> OptionError:
    return OptionError(source="paths", option=path, value=path, reason="it overlaps with another path")


def _part(plan: StructPlan, tree: _Tree) -> StructPlan:
    return plan.replace(
        steps=tuple(_chosen(step, tree.get(step.attribute)) for step in plan.steps),
        tagged=tuple(_chosen(step, tree.get(step.attribute)) for step in plan.tagged),
        partial=True,
    )


def _chosen(step: Step, choice: _Tree | int | None) -> Step:
    if choice is None:
        return step.replace(skipped=True)
    if isinstance(choice, int):
        return step.replace(edit=choice)
    value, inner = step.value, choice.get(ELEMENTS, choice)
    if isinstance(inner, int):
        return step.replace(edit=inner, each=True)
    if ELEMENTS in choice:
        return step.replace(value=value.replace(element=value.item.replace(struct=_part(value.item.inner, inner))))
    return step.replace(value=value.replace(struct=_part(value.inner, inner)))


def _shortened(plan: StructPlan) -> StructPlan:
    """Return a struct without the fields after its last chosen field. The removed fields have their defaults."""
    end = max((number for number, step in enumerate(plan.steps, 1) if not step.skipped), default=0)
    left_out = tuple(_absent(step) for step in plan.steps[end:] + plan.tagged)
    return plan.replace(flexible=False, steps=plan.steps[:end], tagged=(), absent=plan.absent + left_out)


def _absent(step: Step) -> AbsentField:
    return AbsentField(step.attribute, step.json_name, step.value, step.default, ignorable=True)
