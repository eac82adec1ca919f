"""Tests of ``kafka_msgs.values``."""
