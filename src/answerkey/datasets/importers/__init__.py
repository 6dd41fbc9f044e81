"""Importers: other tools' files as golden sets or recorded replies; each is registered in `plugins.importers`."""
