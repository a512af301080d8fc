# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium: $TONNAGE_CHROMIUM, a Chromium or Chrome on the PATH, or playwright's own, which is fetched where
there is none."""

import contextlib
import os
import shutil
import subprocess
import sys


def installed():
    named = os.environ.get("TONNAGE_CHROMIUM")
    for name in [named] if named else ["chromium", "google-chrome", "google-chrome-stable"]:
        path = shutil.which(name)
        # On Ubuntu a file of that name may only say that a snap is missing.
        if path and subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return path
    return None


@contextlib.contextmanager
def chromium():
    from playwright.sync_api import Error, sync_playwright

    path = installed()
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=arguments)
        except Error:
            if path:
                raise
            system = ["--with-deps"] if os.geteuid() == 0 else []
            install = [sys.executable, "-m", "playwright", "install", "--only-shell", *system, "chromium"]
            subprocess.run(install, check=True)
            browser = playwright.chromium.launch(args=arguments)
        yield browser
        browser.close()
