"""Tests of ``kafka_msgs.wire``."""
