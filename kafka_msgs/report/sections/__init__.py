"""Parts of reports out of rows: lag and its trend, skew, retention, slow clients.

One module per question. Rows are mappings with the names of the columns in the tables of jobs, so that any engine may
compute them. A row without a column is one where it is not known. Nothing here reads a file.
"""
