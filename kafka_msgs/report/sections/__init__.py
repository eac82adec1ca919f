"""Report parts built from rows: lag and its trend, skew, retention, slow clients.

Each topic has a module. Rows are mappings with the column names of job tables, so that any engine can compute them. If
a row lacks a column, the value is unknown. This package does not read files.
"""
