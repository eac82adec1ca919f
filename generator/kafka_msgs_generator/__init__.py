"""The schema compiler of kafka-msgs: from Kafka's message definitions to typed Python classes.

Three stages with types between them: a definition as written (`spec`), the checked and resolved message (`ir`), and
the text of a module (`emit`). The command is `kafka-msgs-generator`; for use inside a program see `runtime_compiler`.
"""
