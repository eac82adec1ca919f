"""An extension of griffe: operations look like the methods that they are for callers.

``Operation`` makes a method of a piece of logic that returns ``Steps[T]``, and administration has a table of functions
whose first parameter is the core of a client. Nothing is imported here, so this says once more what ``Operation`` does:
callers get the ``T``, and do not give the core.
"""

from __future__ import annotations

from typing import Any, Final

import griffe

__all__ = ["Operations"]

DECORATORS: Final = frozenset({"Operation", "LastOperation"})
TABLE: Final = "_on_core"
SHELLS: Final = ("client.consumer.shells", "client.producer.shells", "admin.shells")


class Operations(griffe.Extension):
    """Shows the methods of consumers, producers and administration."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Called by griffe when all modules are read."""
        for name in SHELLS if pkg.name == "kafka_msgs" else ():
            for methods in pkg[name].classes.values():
                for member in tuple(methods.members.values()):
                    if isinstance(member, griffe.Function):
                        _show_value(member)
                    elif isinstance(member, griffe.Attribute):
                        _show_function(member, pkg["admin"], methods)


def _show_value(method: griffe.Function) -> None:
    if any(str(each.value) in DECORATORS for each in method.decorators):
        method.returns = _value(method)


def _show_function(attribute: griffe.Attribute, modules: griffe.Module, methods: griffe.Class) -> None:
    call = attribute.value
    if not (isinstance(call, griffe.ExprCall) and str(call.function) == TABLE):
        return
    logic = modules[str(call.arguments[0])]
    itself = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    shown = griffe.Function(
        attribute.name,
        parameters=griffe.Parameters(itself, *list(logic.parameters)[1:]),
        returns=_value(logic),
        docstring=logic.docstring,
        lineno=attribute.lineno,
        endlineno=attribute.endlineno,
        analysis="static",
    )
    methods.set_member(attribute.name, shown)


def _value(logic: griffe.Function) -> str | griffe.Expr | None:
    """Return the ``T`` of a function that returns ``Steps[T]``."""
    returns = logic.returns
    return returns.slice if isinstance(returns, griffe.ExprSubscript) else returns
