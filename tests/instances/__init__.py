"""Tests of ``kafka_msgs.instances``."""
