"""What the protocols do with the groups of a partition beside requests and timers.

A partition is loaded, it is given up, or the topics of the cluster change. ``api.Protocol`` says what each protocol
does then. This module knows the order: that of the protocols, and Kafka's order of the groups.
"""

from __future__ import annotations

from kafka_msgs.groups.api import TopicChange
from kafka_msgs.groups.image import EMPTY_IMAGE
from kafka_msgs.groups.steps import Setting
from kafka_msgs.groups.timeline import walk
from kafka_msgs.groups.transaction import Transaction

__all__ = ["give_up", "start", "tell_of_topics"]


def start(tx: Transaction, setting: Setting) -> None:
    """Begin to serve the groups of a partition that was loaded."""
    change = TopicChange(EMPTY_IMAGE, tx.image, (), (), ())
    for protocol in setting.protocols:
        for hook in protocol.image_changed:
            hook(tx, change)
    _each_group(tx, setting, "loaded")
    for protocol in setting.protocols:
        for begin in protocol.started:
            begin(tx)


def give_up(tx: Transaction, setting: Setting) -> None:
    """Let go of the groups of a partition that is given up."""
    _each_group(tx, setting, "unloaded")


def _each_group(tx: Transaction, setting: Setting, hooks: str) -> None:
    for group_id in walk(tx.state.groups):
        group = tx.state.groups[group_id]
        for hook in setting.hooks(hooks, group.kind):
            hook(tx, group)


def tell_of_topics(tx: Transaction, setting: Setting, change: TopicChange) -> None:
    """Tell the groups that subscribe to topics of a change."""
    for protocol in setting.protocols:
        for hook in protocol.image_changed:
            hook(tx, change)
    names = (*change.created, *change.changed, *change.deleted)
    for group_id in {each: None for name in names for each in tx.state.subscribers.get(name, ())}:
        group = tx.state.groups.get(group_id)
        if group is not None:
            for tell in setting.hooks("topics_changed", group.kind):
                tell(tx, group)
