"""Makes the screenshots of README and docs: `python docs/make_screenshots.py` (or `make screenshots`); needs chromium.

Grades the demo chatbot, opens the HTML report in a headless browser, and writes docs/images/report.png.
"""

import shutil
import subprocess
import sys
import tempfile
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


def take_screenshot(page_file: Path, image: Path) -> None:
    """Write the first screen of a page as a PNG."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.screenshot(path=image)
        browser.close()


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        take_screenshot(grade_demo(Path(folder)), IMAGES / "report.png")
    print(f"{IMAGES / 'report.png'}: {(IMAGES / 'report.png').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
