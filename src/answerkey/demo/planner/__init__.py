"""The deterministic brain: chooses tools, fills in SQL and quotes documents. One file for each skill."""
