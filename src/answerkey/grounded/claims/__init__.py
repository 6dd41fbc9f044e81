"""Claims: the parts of a text that can be checked against evidence, each with its kind and its span."""
