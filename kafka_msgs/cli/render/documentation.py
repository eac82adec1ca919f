"""The documentation of fields: in generated modules it is the string under each field.

Python does not keep these strings, so this module reads them from a module's source.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from typing import Any

__all__ = ["class_documentation", "field_documentation"]


def class_documentation(cls: type[Any]) -> str:
    """Return the first paragraph of a class's documentation, on one line."""
    return _one_line((cls.__doc__ or "").partition("\n\n")[0])


def field_documentation(cls: type[Any]) -> dict[str, str]:
    """Return the documentation of a class's fields by attribute, each on one line; undocumented fields are omitted."""
    return _module_documentation(inspect.getsource(sys.modules[cls.__module__])).get(cls.__name__, {})


@cache
def _module_documentation(source: str) -> dict[str, dict[str, str]]:
    module = ast.parse(source)
    return {node.name: _documented(node) for node in module.body if isinstance(node, ast.ClassDef)}


def _documented(node: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = _string(below)
            if text is not None:
                texts[field.target.id] = _one_line(text)
    return texts


def _string(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")
