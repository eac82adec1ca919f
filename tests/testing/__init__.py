"""Tests of ``kafka_msgs.testing``."""
