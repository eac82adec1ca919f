"""Tests of ``kafka_msgs.columns``."""
