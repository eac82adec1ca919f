"""``python -m kafka_msgs``: the same as the command ``kafka-msgs``."""

from kafka_msgs.cli import main

if __name__ == "__main__":
    main()
