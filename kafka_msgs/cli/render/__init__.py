"""How commands show what they found: tables, trees, hex dumps and JSON.

A module here knows the shape of one thing (a message, its bytes, the rows of a log file) and nothing of options.
"""
