"""The controller: the metadata image of the cluster, and the records that change it.

``image`` holds the state and applies records. The other modules translate requests into records.
"""
