"""A real browser without a window: Debian's chromium and chromium-driver."""

import os
import shutil

import pytest
from selenium import webdriver

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
WHY = "no browser: install Debian's chromium and chromium-driver to run these tests"

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1200,900"
)


def open_browser(profile, *, logs=("browser", "performance")):
    """Start a browser that keeps these logs; the caller quits it."""
    if not (BROWSER and DRIVER):
        # Where CI has installed the browser, a missing one is a failure, not a reason to skip.
        assert not os.environ.get("EQUIPOISE_NEED_BROWSER"), WHY
        pytest.skip(WHY)
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.get("about:blank")  # the browser's own start page asks for much
    return driver


def resize(browser, *, width=1200, height=900):
    """Make the window as wide as a desktop's or a phone's."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def look(browser, address, *, width=1200, height=900):
    """Open a page in a window of this size."""
    resize(browser, width=width, height=height)
    browser.get(address)
    return browser


def overflow(browser, width):
    """Return by how many pixels the page is wider than the window, which a phone's browser would widen for it."""
    return browser.execute_script("return document.documentElement.scrollWidth") - width
