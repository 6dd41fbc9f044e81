"""A target, a scorer, an importer and a report, each a function that pyproject.toml names."""
