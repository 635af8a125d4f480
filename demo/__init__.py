"""`make demo`: a node, a topic, order events in and out through an ordinary Kafka client, and a table of it all."""
