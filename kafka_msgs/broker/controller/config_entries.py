"""Config values of topics and brokers, with their sources and Kafka's defaults.

A topic config has synonyms: broker configs that apply if the topic does not override the value. The first synonym with
a value wins. These are the rules of Kafka's ``ConfigHelper`` and ``ServerTopicConfigSynonyms``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import dropwhile
from typing import Final

from attrs import evolve, frozen

from kafka_msgs.broker.controller.config_defs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    BrokerConfigs,
    ConfigKey,
    config_keys,
)
from kafka_msgs.broker.controller.image import MetadataImage
from kafka_msgs.enums import ConfigResourceType, ConfigSource

__all__ = [
    "RESOURCES",
    "ConfigEntry",
    "effective_topic_configs",
    "resource_entries",
    "resource_overrides",
    "topic_entries",
]


@cache
def _synonyms_of_brokers() -> Mapping[str, tuple[tuple[str, int], ...]]:
    """Return the groups of broker configs that are synonyms of each other, by config name."""
    groups = (each.synonyms for each in config_keys(TOPIC).values())
    return {name: tuple((each, 1) for each, _ in names) for names in groups for name, _ in names}


@frozen
class ConfigSynonym:
    """A config value and the name of the config that provides it."""

    name: str
    value: str | None
    source: ConfigSource
    factor: int = 1

    def scaled(self) -> str | None:
        """Return the value in the unit of the config that it substitutes. Negative numbers are not converted."""
        if self.factor == 1 or self.value is None or int(self.value) < 0:
            return self.value
        return str(int(self.value) * self.factor)


@frozen
class ConfigEntry:
    """A config with its effective value and all its synonyms in order of precedence."""

    setting: ConfigKey
    value: str | None
    source: ConfigSource
    synonyms: tuple[ConfigSynonym, ...]

    @property
    def sensitive(self) -> bool:
        """Whether the value is a secret. Responses omit secrets."""
        return self.setting.type == "password"


def _entry(setting: ConfigKey, counts: ConfigSynonym | None, shown: tuple[ConfigSynonym, ...]) -> ConfigEntry:
    """Return the entry of a config whose effective value comes from ``counts``; None selects the default.

    The value is in Kafka's text format, for example ``7`` for ``" +7 "``. Broker values among the synonyms stay
    unchanged.
    """
    value = setting.default if counts is None else counts.scaled()
    if value is not None:
        value = setting.normalize(value)
    if shown and shown[0].source in _OF_RESOURCES:
        shown = (evolve(shown[0], value=value), *shown[1:])
    source = shown[0].source if shown else ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(setting, value, source, shown)


def topic_entries(image: MetadataImage, configs: BrokerConfigs, own: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """Yield the entries of a topic with the overrides ``own``, without internal configs."""
    for setting in config_keys(TOPIC).values():
        if not setting.internal:
            names = setting.synonyms
            found = tuple(broker_synonyms(image, configs, names, None))
            counts = next((each for name, _ in names for each in found if each.name == name), None)
            shown = _from(names[0][0], found) if names else ()
            if setting.name in own:
                counts = ConfigSynonym(setting.name, own[setting.name], ConfigSource.DYNAMIC_TOPIC_CONFIG)
                shown = (counts, *shown)
            yield _entry(setting, counts, shown)


_OF_RESOURCES: Final = frozenset(
    {ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_GROUP_CONFIG, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG}
)
"""The sources of overrides on a topic, a group or a subscription."""


def resource_overrides(image: MetadataImage, kind: ConfigResourceType, name: str) -> Mapping[str, str]:
    """Return the config overrides of a resource."""
    return image.configs.get((kind, name), {})


def resource_entries(
    image: MetadataImage,
    configs: BrokerConfigs,
    kind: ConfigResourceType,
    name: str,
    node_configs: Mapping[str, str],
) -> Iterator[ConfigEntry]:
    """Yield the entries of a resource, without internal configs.

    The name of a broker is its id, or empty for all brokers. ``node_configs`` are the configs that are specific to one
    broker's properties file.
    """
    own = resource_overrides(image, kind, name)
    if kind is ConfigResourceType.TOPIC:
        yield from topic_entries(image, configs, own)
        return
    if kind is ConfigResourceType.BROKER:
        static = {**configs.static, **node_configs}
        yield from _broker_entries(image, configs, int(name) if name else None, own, static)
        return
    resource, source = RESOURCES[kind]
    for setting in config_keys(resource).values():
        if setting.internal:
            continue
        synonyms = [ConfigSynonym(setting.name, own[setting.name], source)] if setting.name in own else []
        if kind is ConfigResourceType.GROUP:
            synonyms += _group_synonyms(image, configs, setting)
        yield _entry(setting, synonyms[0] if synonyms else None, tuple(synonyms))


def _broker_entries(
    image: MetadataImage,
    configs: BrokerConfigs,
    broker_id: int | None,
    own: Mapping[str, str],
    static: Mapping[str, str],
) -> Iterator[ConfigEntry]:
    """Yield the entries of a broker. None selects the cluster-wide defaults, which contain only dynamic configs."""
    for setting in config_keys(BROKER).values():
        if setting.internal or (broker_id is None and setting.name not in own):
            continue
        names = _synonyms_of_brokers().get(setting.name, ((setting.name, 1),))
        shown = _from(setting.name, tuple(broker_synonyms(image, configs, names, broker_id, static)))
        if broker_id is None:
            shown = tuple(each for each in shown if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        entry = _entry(setting, next((each for each in shown if each.name == setting.name), None), shown)
        yield entry if broker_id is not None else evolve(entry, value=own[setting.name])


def _group_synonyms(image: MetadataImage, configs: BrokerConfigs, setting: ConfigKey) -> Iterator[ConfigSynonym]:
    """Yield the cluster-wide values of a group config: the values of its broker config."""
    broker = config_keys(BROKER).get(_GROUP_NAMES.get(setting.name, f"group.{setting.name}"))
    if broker is not None:
        yield from broker_synonyms(image, configs, ((broker.name, 1),), None)
    else:
        yield ConfigSynonym(setting.name, setting.default, ConfigSource.DEFAULT_CONFIG)


_GROUP_NAMES: Final = {"streams.assignor.name": "group.streams.assignors"}
"""The broker configs of group configs, if the names differ after ``group.``."""


RESOURCES: Final[Mapping[ConfigResourceType, tuple[str, ConfigSource]]] = {
    ConfigResourceType.TOPIC: (TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG),
    ConfigResourceType.BROKER: (BROKER, ConfigSource.DYNAMIC_BROKER_CONFIG),
    ConfigResourceType.GROUP: (GROUP, ConfigSource.DYNAMIC_GROUP_CONFIG),
    ConfigResourceType.CLIENT_METRICS: (CLIENT_METRICS, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG),
}
"""The config definitions of each resource type, and the source of an override on such a resource."""


def effective_topic_configs(image: MetadataImage, configs: BrokerConfigs, topic: str) -> dict[str, str | None]:
    """Return the effective values of all configs of a topic."""
    own = resource_overrides(image, ConfigResourceType.TOPIC, topic)
    return {entry.setting.name: entry.value for entry in topic_entries(image, configs, own)}


def _from(name: str, synonyms: tuple[ConfigSynonym, ...]) -> tuple[ConfigSynonym, ...]:
    """Return the synonyms for a response. Kafka omits the synonyms before the first one with the config's own name."""
    return tuple(dropwhile(lambda each: each.name != name, synonyms))


def broker_synonyms(
    image: MetadataImage,
    configs: BrokerConfigs,
    names: Iterable[tuple[str, int]],
    broker_id: int | None,
    static: Mapping[str, str] | None = None,
) -> Iterator[ConfigSynonym]:
    """Yield the values of synonymous broker configs, given as names and factors, in order of their sources.

    ``broker_id`` None selects the cluster-wide defaults. ``static`` holds the broker's static configs, if they differ
    from the static configs of all brokers.
    """
    overrides, known = image.configs, config_keys(BROKER)
    own = {} if broker_id is None else overrides.get((ConfigResourceType.BROKER, str(broker_id)), {})
    sources: tuple[tuple[ConfigSource, Callable[[str], str | None]], ...] = (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, own.get),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, overrides.get((ConfigResourceType.BROKER, ""), {}).get),
        (ConfigSource.STATIC_BROKER_CONFIG, (configs.static if static is None else static).get),
        (ConfigSource.DEFAULT_CONFIG, lambda name: known[name].default),
    )
    for source, value_of in sources:
        for name, factor in names:
            value = value_of(name)
            if value is not None:
                yield ConfigSynonym(name, value, source, factor)
