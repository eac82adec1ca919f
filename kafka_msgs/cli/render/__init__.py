"""Formatting of command results: tables, trees, hex dumps and JSON.

Each module formats one kind of data (a message, its bytes, the rows of a log file) and is independent of options.
"""
