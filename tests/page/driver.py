# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, for the tests of the page of `cox ui` and for its benchmark."""

import time

from selenium import webdriver


def browser(profile, width=1280, height=860):
    """`profile`: a folder for what Chromium keeps."""
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", f"--window-size={width},{height}",
                 "--disable-background-networking", "--disable-component-update", "--user-data-dir=" + profile):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.chrome.service.Service("/usr/bin/chromedriver"))


def until(wanted, seconds=60):
    """Waits until `wanted` returns something true, and returns that. What is not in the page yet does not count."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = wanted()
        except Exception:  # an element that has just been replaced
            found = None
        if found or time.monotonic() > end:
            return found
        time.sleep(0.2)
