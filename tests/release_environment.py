"""An environment that has the wheel and its core dependencies and nothing else, without the network."""

import compileall
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

__all__ = ["core_environment"]

ROOT = Path(__file__).parents[1]


def core_environment(folder: Path) -> Path:
    """Build the wheel and unpack it in a new environment beside links to its dependencies here; the folder of its programs."""
    hatchling = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    built = subprocess.run(hatchling, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment", symlinks=True)
    (site,) = (folder / "environment" / "lib").glob("python3.*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    compileall.compile_dir(site, quiet=1)
    (unpacked,) = site.glob("answerkey-*.dist-info")
    for name in _needed(PathDistribution(unpacked).requires or []):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}:
            (site / top).symlink_to(str(found.locate_file(top)))
    programs = folder / "environment" / "bin"
    script = programs / "answerkey"
    script.write_text(f"#!{programs}/python\nfrom answerkey.cli.main import main\nmain()\n")
    script.chmod(0o755)
    return programs


def _needed(requirements: list[str]) -> set[str]:
    """The packages that requirements ask for without any extra, with what those ask for."""
    wanted, names = [Requirement(text) for text in requirements], set[str]()
    while wanted:
        requirement = wanted.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name not in names:
            names.add(name)
            wanted += [Requirement(text) for text in distribution(name).requires or []]
    return names
