"""The tests of ``kafka_msgs.capture``."""
