"""Tests of ``kafka_msgs.registry``."""
