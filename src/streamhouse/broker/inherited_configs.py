"""What a topic goes by where it has no config of its own, as clients are told it by any node."""

from __future__ import annotations

from dataclasses import replace

from streamhouse.broker.dynamic_configs import ConfigSource, DynamicConfigs, SourcedValue
from streamhouse.broker.led_durability import DURABILITY
from streamhouse.broker.topics import Topics
from streamhouse.model.topic import Topic


def inherited_values(topics: Topics, configs: DynamicConfigs, topic: Topic, name: str) -> list[SourcedValue]:
    """Every value of one config, the one that counts first. Of the durability it is that of the agents which lead the
    topic: this node may lead none of it, and then what its own settings say is not so."""
    values = configs.topic_default(name)
    if name == DURABILITY:
        unset = {own: value for own, value in topic.config.items() if own != name}
        led = topics.told_config_of(replace(topic, config=unset))[name]
        if values[0].value != led:
            return [SourcedValue(ConfigSource.SETTING, led), values[-1]]
    return values
