"""Addons in Python files: instances in ``addons``, or hooks as functions of the module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kafka_msgs.errors import TapError
from kafka_msgs.tap.addons import Addon

__all__ = ["load_addons"]

_HOOKS: Final = ("connected", "closed", "request", "response")


def load_addons(path: Path) -> tuple[Addon, ...]:
    """Return the addons of a Python file, which is executed.

    The file defines ``addons``, an iterable of ``Addon`` objects, or functions named like the hooks, and optionally
    ``apis``. Raises ``TapError`` if the file fails or defines neither.
    """
    module = _execute(path)
    listed = getattr(module, "addons", None)
    if listed is None:
        return (_function_addon(module, path),)
    found = tuple(listed) if isinstance(listed, Iterable) else (listed,)
    wrong = [each for each in found if not isinstance(each, Addon)]
    if wrong or not found:
        raise TapError(address=str(path), reason=f"addons are instances of Addon, not {wrong or found!r:.100}")
    return found


def _execute(path: Path) -> ModuleType:
    name = f"kafka_msgs_addon_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TapError(address=str(path), reason="not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # Classes of the file need their module, for example attrs and pickle.
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # A user's file may fail in any way.
        raise TapError(address=str(path), reason=f"{type(error).__name__}: {error}") from error
    return module


def _function_addon(module: ModuleType, path: Path) -> Addon:
    hooks = {name: _as_method(getattr(module, name)) for name in _HOOKS if callable(getattr(module, name, None))}
    if not hooks:
        raise TapError(address=str(path), reason=f"defines neither addons nor a hook: {', '.join(_HOOKS)}")
    made: Addon = type(path.stem, (Addon,), {**hooks, "apis": getattr(module, "apis", None)})()
    return made


def _as_method(function: Callable[[Any], object]) -> Callable[[Addon, Any], None]:
    def hook(self: Addon, argument: Any) -> None:
        function(argument)

    return hook
