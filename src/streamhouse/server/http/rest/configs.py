"""Configs with what they mean, over REST: of a topic, and of this node as Kafka's tools call it, a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from streamhouse.broker.broker import Broker
from streamhouse.broker.dynamic_configs import ConfigSource, SourcedValue
from streamhouse.broker.inherited_configs import inherited_values
from streamhouse.model.broker_config import BROKER_CONFIG_KEYS
from streamhouse.model.config_key import ConfigKey
from streamhouse.model.errors import NotFound
from streamhouse.model.topic import CONFIG_KEYS
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import topics as api

_SOURCES: dict[ConfigSource, Literal["given", "node", "cluster", "setting", "default"]] = {
    ConfigSource.GIVEN: "given",
    ConfigSource.NODE: "node",
    ConfigSource.CLUSTER: "cluster",
    ConfigSource.SETTING: "setting",
    ConfigSource.DEFAULT: "default",
}
_EXAMPLE = api.ConfigsAnswer(
    configs=[
        api.ConfigAnswer(
            name="retention.ms",
            value="86400000",
            source="topic",
            default="604800000",
            type="long",
            description="how long records are kept",
            no_effect_because=None,
        )
    ]
)


def add_configs(rest: Rest, broker: Broker) -> None:
    configs = _Configs(broker)
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/configs",
        configs.of_topic,
        summary="Describe a topic's configs: what each means, who set it, and which have no effect",
        tag="topics",
        answer=api.ConfigsAnswer,
        answer_example=_EXAMPLE,
        errors=(NotFound,),
    )
    rest.route(
        "GET",
        f"{API}/broker-configs",
        configs.of_broker,
        summary="Describe the configs of this node that can be set while it runs, most of them defaults for topics",
        tag="topics",
        answer=api.ConfigsAnswer,
        answer_example=_EXAMPLE,
    )


class _Configs:
    def __init__(self, broker: Broker) -> None:
        self._topics = broker.topics
        self._configs = broker.configs

    async def of_topic(self, call: Call) -> api.ConfigsAnswer:
        topic = await self._topics.look_up(call.path["topic"])
        effective = self._topics.told_config_of(topic)
        answers: list[api.ConfigAnswer] = []
        for name, key in CONFIG_KEYS.items():
            inherited = _answer(name, key, inherited_values(self._topics, self._configs, topic, name))
            is_own = name in topic.config
            answers.append(
                api.ConfigAnswer(
                    name=name,
                    value=effective[name],
                    source="topic" if is_own else inherited.source,
                    default=inherited.value if is_own else key.default,
                    type=inherited.type,
                    description=key.help,
                    no_effect_because=key.idle_because,
                )
            )
        return api.ConfigsAnswer(configs=answers)

    async def of_broker(self, _: Call) -> api.ConfigsAnswer:
        return api.ConfigsAnswer(
            configs=[_answer(name, key, self._configs.values(name, key)) for name, key in BROKER_CONFIG_KEYS.items()]
        )


def _answer(name: str, key: ConfigKey, values: Sequence[SourcedValue]) -> api.ConfigAnswer:
    source, value = values[0]
    return api.ConfigAnswer(
        name=name,
        value=value,
        source=_SOURCES[source],
        default=key.default,
        type=key.type.name.lower(),
        description=key.help,
        no_effect_because=key.idle_because,
    )
