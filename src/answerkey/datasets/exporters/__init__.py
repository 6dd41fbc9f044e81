"""Exporters: a golden set in other tools' files; each is registered in `plugins.exporters`."""
