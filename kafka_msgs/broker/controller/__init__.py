"""The controller: the image of the cluster, and the changes of it, which are records.

``image`` has the state and applies records. The other modules answer requests with records that change it.
"""
