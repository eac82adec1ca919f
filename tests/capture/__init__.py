"""Tests of ``kafka_msgs.capture``."""
