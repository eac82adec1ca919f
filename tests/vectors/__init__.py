"""Test vectors as plain files, for any language: see ``README.md``.

``generate`` writes them, ``files`` reads them, ``test_vectors`` runs them.
"""
