"""The commands, one module per command: it parses options, calls the library, and prints with ``render``."""
