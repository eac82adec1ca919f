"""Tests of ``kafka_msgs.codec``: the same tests over every executor."""
