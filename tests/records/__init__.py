"""Tests of ``kafka_msgs.records``."""
