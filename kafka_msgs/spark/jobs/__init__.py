"""The jobs, which summarize complete log directories and captures as tables and a report.

Each job has a module; ``job`` contains the shared code. This module imports none of them, so that each job loads only
its dependencies.
"""
