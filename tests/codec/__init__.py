"""Tests of ``kafka_msgs.codec``: the same tests with every executor."""
