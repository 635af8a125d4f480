"""Turns Kafka's message definitions into the codecs of `streamhouse.wire.kafka.messages`."""
