"""Tests of kafka_msgs.client."""
