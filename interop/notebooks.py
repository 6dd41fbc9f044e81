# /// script
# requires-python = ">=3.11"
# dependencies = ["nbclient==0.10.2", "ipykernel"]
# ///
"""Jupyter: the example notebooks in a kernel, from top to bottom."""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

for path in sorted((Path(__file__).parents[1] / "examples").rglob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    print(f"jupyter {path.name}: {notebook.cells[-1].outputs[0]['data']['text/plain']}")
