"""Every public class and function has a docstring, which names the errors that its code raises."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tests.support.docs_tools import load_tool

PROTOCOL = frozenset({"AttributeError", "NotImplementedError", "StopAsyncIteration", "StopIteration"})
"""Errors that Python's own protocols require."""


def public_objects() -> dict[str, Any]:
    """Return the public classes and functions of this library by full name."""
    found = {}
    for name in load_tool("public_api").MODULES:
        module = import_module(name)
        for exported in module.__all__:
            value = getattr(module, exported)
            if inspect.isclass(value) or inspect.isroutine(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return {name: value for name, value in found.items() if name.startswith("kafka_msgs.") and ".messages." not in name}


def functions(name: str, value: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield a function, or the public methods of a class; each with the docstring of its class."""
    if not inspect.isclass(value):
        yield name, inspect.unwrap(value), ""
        return
    for key, member in vars(value).items():
        function: Any = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        function = inspect.unwrap(function)
        ours = inspect.isfunction(function) and function.__module__ != "typing"  # which gives protocols their __init__
        if ours and (not key.startswith("_") or key == "__init__"):
            yield f"{name}.{key}", function, inspect.getdoc(value) or ""


def raised(function: Any) -> set[str]:
    """Return the names of the exceptions in the raise statements of a function."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # created at run time by attrs
        return set()
    errors = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    called = [error.func if isinstance(error, ast.Call) else error for error in errors]
    names = {error.attr if isinstance(error, ast.Attribute) else getattr(error, "id", "") for error in called}
    return {name for name in names if name[:1].isupper()} - PROTOCOL


def test_every_public_name_has_a_docstring() -> None:
    objects = public_objects()
    assert len(objects) > 400
    assert [name for name, value in objects.items() if not inspect.getdoc(value)] == []
    methods = [each for name, value in objects.items() for each in functions(name, value)]
    without = [name for name, function, _ in methods if not name.endswith("__init__") and not inspect.getdoc(function)]
    assert without == []


def test_docstrings_name_the_errors_that_functions_raise() -> None:
    """Direct raise statements only: errors of called functions are for the reader of the code to document."""
    unnamed = {}
    for name, value in public_objects().items():
        for place, function, of_class in functions(name, value):
            text = (inspect.getdoc(function) or "") + of_class
            if errors := {error for error in raised(function) if error not in text}:
                unnamed[place] = errors
    assert unnamed == {"kafka_msgs.errors.KafkaMsgsError.__init__": {"TypeError"}}
