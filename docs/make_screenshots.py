"""Makes the screenshots of README and docs: `python docs/make_screenshots.py` (or `make screenshots`); needs chromium.

Grades the demo chatbot and a weaker one, and opens the HTML report and the dashboard in a headless browser.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
# The first screen of the report.
WIDTH, HEIGHT = 1080, 780


def grade_demo(folder: Path) -> Path:
    """Run the demo in an empty folder and return its HTML report."""
    program = Path(sys.executable).with_name("answerkey")
    command = [program, "run", "--target", "demo", "--name", "demo", "-o", "report.html"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "report.html"


@contextmanager
def serve_dashboard(folder: Path) -> Iterator[str]:
    """The address of a dashboard with the demo as the baseline of a weaker version."""
    program = str(Path(sys.executable).with_name("answerkey"))
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL}
    subprocess.run([program, "baseline", "set", "production", "demo"], check=True, **quiet)
    weaker = ["--target", "demo:basic", "--name", "demo-basic", "--gate", "score >= 0.9"]
    # The gate fails.
    subprocess.run([program, "run", *weaker, "--baseline", "production"], check=False, **quiet)
    command = [program, "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline() if server.stdout else ""
            yield line.split(" on ")[1].split()[0]
        finally:
            server.terminate()


def take_screenshot(address: str, image: Path) -> None:
    """Write the first screen of a page as a PNG."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(address)
        page.screenshot(path=image)
        browser.close()


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        take_screenshot(grade_demo(Path(folder)).as_uri(), IMAGES / "report.png")
        with serve_dashboard(Path(folder)) as address:
            take_screenshot(f"{address}/runs/demo-basic", IMAGES / "dashboard.png")
            take_screenshot(f"{address}/compare?base=demo&run=demo-basic", IMAGES / "dashboard-compare.png")
    for image in sorted(IMAGES.glob("*.png")):
        print(f"{image}: {image.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
