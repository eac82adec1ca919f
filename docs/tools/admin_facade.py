"""Generate ``AsyncAdmin`` from a table: each method is an administration function without its first parameter.

``facades.py`` calls this module, and then generates ``Admin`` from the result. No module is imported: signatures and
docstrings come from the source, together with the imports that their types need.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["async_admin"]

OPERATIONS: Final[dict[str, dict[str, str]]] = {
    "Groups of any type": {
        "list_groups": "groups.list_groups",
        "describe_groups": "groups.describe_groups",
        "describe_consumer_groups": "groups.describe_consumer_groups",
        "describe_classic_groups": "groups.describe_classic_groups",
        "describe_share_groups": "groups.describe_share_groups",
        "delete_groups": "groups.delete_groups",
        "remove_group_members": "groups.remove_group_members",
        "list_group_offsets": "group_offsets.list_group_offsets",
        "list_offsets_of_groups": "group_offsets.list_offsets_of_groups",
        "alter_group_offsets": "group_offsets.alter_group_offsets",
        "delete_group_offsets": "group_offsets.delete_group_offsets",
        "plan_offset_reset": "offset_resets.plan_offset_reset",
        "reset_group_offsets": "offset_resets.reset_group_offsets",
        "list_share_group_offsets": "share_groups.list_share_group_offsets",
        "alter_share_group_offsets": "share_groups.alter_share_group_offsets",
        "delete_share_group_offsets": "share_groups.delete_share_group_offsets",
    },
    "Streams groups, by the names of KIP-1071": {
        "describe_streams_groups": "streams_groups.describe_streams_groups",
        "list_streams_group_offsets": "group_offsets.list_offsets_of_groups",
        "alter_streams_group_offsets": "group_offsets.alter_group_offsets",
        "delete_streams_group_offsets": "group_offsets.delete_topic_offsets",
        "delete_streams_groups": "groups.delete_groups",
    },
    "Topics and partitions": {
        "list_topics": "topics.list_topics",
        "describe_topics": "topics.describe_topics",
        "describe_topic_partitions": "topics.describe_topic_partitions",
        "create_topics": "topics.create_topics",
        "delete_topics": "topics.delete_topics",
        "create_partitions": "topics.create_partitions",
        "list_offsets": "partitions.list_offsets",
        "list_end_offsets_of_epochs": "partitions.list_end_offsets_of_epochs",
        "delete_records": "partitions.delete_records",
        "elect_leaders": "partitions.elect_leaders",
        "alter_partition_reassignments": "partitions.alter_partition_reassignments",
        "list_partition_reassignments": "partitions.list_partition_reassignments",
    },
    "Configurations and log directories": {
        "list_config_resources": "configs.list_config_resources",
        "list_client_metrics_resources": "configs.list_client_metrics_resources",
        "describe_configs": "configs.describe_configs",
        "alter_configs": "configs.alter_configs",
        "describe_log_dirs": "log_dirs.describe_log_dirs",
        "alter_replica_log_dirs": "log_dirs.alter_replica_log_dirs",
    },
    "Transactions and producers": {
        "list_transactions": "transactions.list_transactions",
        "describe_transactions": "transactions.describe_transactions",
        "describe_producers": "transactions.describe_producers",
        "abort_transaction": "transactions.abort_transaction",
        "fence_producers": "transactions.fence_producers",
        "find_hanging_transactions": "hanging_transactions.find_hanging_transactions",
    },
    "Security": {
        "describe_acls": "acls.describe_acls",
        "create_acls": "acls.create_acls",
        "delete_acls": "acls.delete_acls",
        "describe_client_quotas": "quotas.describe_client_quotas",
        "alter_client_quotas": "quotas.alter_client_quotas",
        "describe_user_scram_credentials": "users.describe_user_scram_credentials",
        "alter_user_scram_credentials": "users.alter_user_scram_credentials",
        "create_delegation_token": "users.create_delegation_token",
        "renew_delegation_token": "users.renew_delegation_token",
        "expire_delegation_token": "users.expire_delegation_token",
        "describe_delegation_tokens": "users.describe_delegation_tokens",
    },
    "The cluster": {
        "describe_cluster": "cluster.describe_cluster",
        "find_coordinators": "cluster.find_coordinators",
        "api_versions": "cluster.api_versions",
        "describe_features": "cluster.describe_features",
        "update_features": "cluster.update_features",
        "describe_quorum": "cluster.describe_quorum",
        "add_raft_voter": "cluster.add_raft_voter",
        "remove_raft_voter": "cluster.remove_raft_voter",
        "unregister_broker": "cluster.unregister_broker",
        "unregister_controller": "cluster.unregister_controller",
        "telemetry_subscriptions": "cluster.telemetry_subscriptions",
    },
}
"""The methods by section of the class, and the functions that they call."""

_HEAD: Final = '''"""``AsyncAdmin``: all administration methods. Generated by docs/tools/facades.py: do not edit it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

{imports}

if TYPE_CHECKING:
{types}

__all__ = ["AsyncAdmin"]


class AsyncAdmin(AsyncFacade):
    """Administration of a cluster.

        async with AsyncAdmin("localhost:9092") as admin:
            await admin.list_group_offsets("billing")

    The first argument is an ``AsyncClient``, which stays open, or what ``AsyncClient`` takes, with the same options.
    Every method takes ``timeout``: the seconds for the whole operation; None is for the timeout of the client. Methods
    on many things return ``Results``: one outcome for each. Methods raise ``BrokerError`` where the whole operation
    failed, ``DeadlineError`` and the other errors of a client.

    Many calls may run at the same time.
    """

    # blocking doc: Any thread may use it.

    def __init__(
        self,
        servers: Servers | AsyncClient,
        # blocking: *,
        # blocking: threadless: bool = False,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._take_client(
            servers,
            options,
            # blocking: threadless=threadless,
        )
'''

_TAIL: Final = '''
    # The end

    async def close(self) -> None:
        """Close the connections, if they are this object's own."""
        if not self._ended:
            self._ended = True
            if self._owns_client:
                await self.client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
'''

_BASE_IMPORTS: Final = (
    "from kafka_msgs.client.async_client import AsyncClient",
    "from kafka_msgs.client.config import ClientOptions",
    "from kafka_msgs.client.facade import AsyncFacade",
    "from kafka_msgs.client.config_loading import Servers",
)


class _Module:
    """The functions of a module, and the origins of its names."""

    def __init__(self, package: Path, name: str) -> None:
        tree = ast.parse((package / f"{name}.py").read_text())
        self.functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
        self._imports: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for each in node.names:
                    self._imports[each.asname or each.name] = _import(node.module, each)
        self._own = f"kafka_msgs.admin.{name}"
        self._defined = {name for node in tree.body for name in _defines(node)}

    def import_of(self, name: str) -> str | None:
        """Return the statement that imports a name, or None if it needs no import."""
        if name in self._defined:
            return f"from {self._own} import {name}"
        return self._imports.get(name)


def _import(module: str | None, name: ast.alias) -> str:
    alias = "" if name.asname is None else f" as {name.asname}"
    return f"from {module} import {name.name}{alias}"


def _defines(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def async_admin(package: Path) -> str:
    """Return the source of the module with ``AsyncAdmin``, before formatting."""
    modules: dict[str, _Module] = {}
    needed, types, body = set(_BASE_IMPORTS), set[str](), []
    for part, methods in OPERATIONS.items():
        body.append(f"\n    # {part}\n")
        for method, place in methods.items():
            name, function = place.split(".")
            module = modules.setdefault(name, _Module(package, name))
            needed.add(f"from kafka_msgs.admin import {name} as _{name}")
            body.append(_method(method, f"_{place}", module.functions[function]))
            _collect(module.functions[function], module, needed, types)
    head = _HEAD.replace("{imports}", "\n".join(sorted(needed)))
    head = head.replace("{types}", "\n".join(f"    {each}" for each in sorted(types - needed)))
    return head + "".join(body) + _TAIL


def _collect(function: ast.FunctionDef, module: _Module, needed: set[str], types: set[str]) -> None:
    """Add the imports of a signature: unconditional ones for its defaults, ``TYPE_CHECKING`` ones for its types."""
    arguments = function.args
    defaults = [*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)]
    needed |= {found for each in defaults for name in _names(each) if (found := module.import_of(name))}
    shown = [each.annotation for each in (*arguments.args[1:], *arguments.kwonlyargs) if each.annotation is not None]
    shown += [_value(function)]
    types |= {found for each in shown for name in _names(each) if (found := module.import_of(name))}


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _value(function: ast.FunctionDef) -> ast.expr:
    """Return the ``T`` of a function that returns ``Flow[T]``."""
    assert isinstance(function.returns, ast.Subscript)
    return function.returns.slice


def _method(name: str, place: str, function: ast.FunctionDef) -> str:
    arguments = function.args
    passed = [each.arg for each in arguments.args[1:]] + [f"{each.arg}={each.arg}" for each in arguments.kwonlyargs]
    arguments.args[0] = ast.arg("self")
    documentation = ast.get_docstring(function, clean=False)
    return (
        f"\n    async def {name}({ast.unparse(arguments)}) -> {ast.unparse(_value(function))}:\n"
        f'        """{_indented(documentation or "")}"""\n'
        f"        return await self._run({place}({', '.join(['self.client.core', *passed])}))\n"
    )


def _indented(documentation: str) -> str:
    lines = documentation.split("\n")
    return "\n".join([lines[0], *(f"    {line}" if line.strip() else "" for line in lines[1:])])
