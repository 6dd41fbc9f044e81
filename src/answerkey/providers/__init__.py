"""Model APIs on the wire: what one step asks of a model and how it is answered, for whoever sends it (targets, judges)."""
