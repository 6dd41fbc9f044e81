"""Model judges: a rubric, a prompt that keeps replies data, a client, panels, canaries, budgets and calibration."""
