"""An embedded broker: partitions, handlers and coordinators that any Kafka client can use."""
