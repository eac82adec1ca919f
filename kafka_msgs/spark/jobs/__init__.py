"""The jobs: what whole log directories and captures add up to, as tables and a report.

One module per job; ``job`` has what they have in common. Nothing is imported here, so that each costs only what it
needs.
"""
