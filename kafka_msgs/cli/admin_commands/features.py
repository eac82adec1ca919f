"""``kafka-msgs features``: the feature levels of a cluster (KIP-584)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import OptionActions, action_options, print_outcomes, required
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing

if TYPE_CHECKING:
    from kafka_msgs.admin.cluster import Features

__all__ = ["features_command"]

_COLUMNS: Final = ("feature", "supportedMinVersion", "supportedMaxVersion", "finalizedVersionLevel", "epoch")


def _level(text: str) -> tuple[str, int]:
    name, _, level = text.partition("=")
    if not name or not (level.isascii() and level.isdigit()):
        raise click.BadParameter(f"{text!r} is not FEATURE=LEVEL")
    return name, int(level)


_ONLY_WITH: Final[OptionActions] = {
    **dict.fromkeys(("levels", "validate_only"), ("upgrade", "downgrade", "disable")),
    "unsafe": ("downgrade", "disable"),
}


@click.command("features")
@action_options(
    "describe",
    _ONLY_WITH,
    describe="Show supported and finalized levels.",
    upgrade="Raise the levels of features.",
    downgrade="Lower the levels of features; level 0 disables a feature.",
    disable="The same as --downgrade to level 0.",
)
@click.option("--feature", "levels", metavar="NAME=LEVEL", multiple=True, help="A feature and its new level.")
@click.option("--unsafe", is_flag=True, help="With --downgrade, allow the loss of metadata.")
@click.option("--validate-only", "--dry-run", is_flag=True, help="Change nothing.")
@broker_options()
@listing_option
def features_command(
    action: str,
    levels: tuple[str, ...],
    unsafe: bool,
    validate_only: bool,
    cluster: ClusterOptions,
    output_format: str,
) -> None:
    """Show or change the feature levels of a cluster, such as metadata.version.

    Options have the names of kafka-features. The exit status is 1 if a change failed.

    Example: kafka-msgs features --upgrade --feature transaction.version=2 -b localhost
    """
    with cluster.admin() as admin:
        if action == "describe":
            print_listing(output_format, _COLUMNS, _rows(admin.describe_features()))
            return
        from kafka_msgs.admin.cluster import FeatureUpdate
        from kafka_msgs.enums import UpgradeType

        lowering = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
        kind = UpgradeType.UPGRADE if action == "upgrade" else lowering
        texts = [f"{feature}=0" if action == "disable" else feature for feature in required(levels, "--feature")]
        updates = {name: FeatureUpdate(level, kind) for name, level in map(_level, texts)}
        results = admin.update_features(updates, validate_only=validate_only)
    print_outcomes(output_format, ("feature",), results, lambda name, _: {"feature": name})


def _rows(features: Features) -> list[dict[str, Any]]:
    rows = []
    for name in sorted({*features.supported, *features.finalized}):
        low, high = features.supported.get(name, (None, None))
        level = features.finalized.get(name, (None, None))[1]
        rows.append(dict(zip(_COLUMNS, (name, low, high, level, features.epoch), strict=True)))
    return rows
