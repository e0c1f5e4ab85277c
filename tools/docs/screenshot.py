"""Photograph the top of a report for the docs; needs Debian's chromium and chromium-driver.

python tools/docs/screenshot.py          # docs/figures/report.png
"""

import base64
import shutil
import tempfile
from io import BytesIO
from pathlib import Path

from figures import HERE, embedded
from PIL import Image
from selenium import webdriver

from equipoise.report import report_of, write_report

SIZE = {"width": 1100, "height": 1350, "deviceScaleFactor": 1, "mobile": False}
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars"
)


def main() -> None:
    network, _ = embedded()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(
            report_of(network, title="A small network on noisy digits"), Path(folder) / "report.html"
        )
        for flag in (*FLAGS.split(), f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        driver = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
        )
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
        driver.get(page.as_uri())
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        driver.quit()
    image = Image.open(BytesIO(base64.b64decode(shot))).convert("RGB").quantize(160, dither=Image.Dither.NONE)
    image.save(HERE / "report.png", optimize=True)
    print(HERE / "report.png")


if __name__ == "__main__":
    main()
