"""The commands, one module per command: options in, one call into the library, and ``render`` for what is printed."""
