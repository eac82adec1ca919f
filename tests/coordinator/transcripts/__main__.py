"""Runs every recorded script on Kafka again and writes the results."""

from tests.coordinator.comparison import alike
from tests.coordinator.oracle import CoordinatorOracle
from tests.coordinator.transcripts import NAMES, read, write

oracle = CoordinatorOracle.shared()
for name in NAMES:
    commands, recorded = read(name)
    results = oracle.run(commands)
    changed = len(recorded) != len(results) or not all(map(alike, recorded, results))
    if changed:
        write(name, commands, results)
    print(f"{name}: {len(commands)} commands, {'written' if changed else 'as it was'}")
