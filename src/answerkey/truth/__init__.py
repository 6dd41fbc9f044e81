"""Truth: expectations computed from the user's data, and preconditions on that data."""
