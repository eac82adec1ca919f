"""The scripts of ``docs/tools`` as modules."""

from __future__ import annotations

from importlib import util
from types import ModuleType

from tests.support.markdown_pages import ROOT

__all__ = ["load_tool"]


def load_tool(name: str) -> ModuleType:
    """Return the module of ``docs/tools/NAME.py``, which is not in a package."""
    spec = util.spec_from_file_location(name, ROOT / "docs" / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
