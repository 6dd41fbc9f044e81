"""The command line: one file per command, each assembling parts that live elsewhere."""
