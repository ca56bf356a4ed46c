"""A JupyterLab of the tests' own, and one of its notebooks in a browser page, driven as a learner would."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, expect

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS, CELL_SECONDS = 120, 120
# What JupyterLab would otherwise ask the internet for, or hide: cells that are scrolled out of view.
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
VIEW = {"width": 1280, "height": 900}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


class Lab:
    """A JupyterLab server on copies of the learner's notebooks, with configuration of its own."""

    def __init__(self, folder: Path) -> None:
        """folder: an empty one. Raises RuntimeError with the server's log if it doesn't start."""
        self.notebooks, self.token = folder / "notebooks", secrets.token_hex(16)
        self.notebooks.mkdir()
        for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"):
            shutil.copy(path, self.notebooks)
        for name, values in SETTINGS.items():
            path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        self.log, self._runtime = folder / "server.log", folder / "runtime"
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--notebook-dir={self.notebooks}"]
        command += [f"--IdentityProvider.token={self.token}", "--LabApp.extension_manager=readonly"]
        command += ["--LabApp.expose_app_in_browser=True", "--ServerApp.ip=127.0.0.1", "--allow-root"]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                command, env=self._environment(folder), stdout=log, stderr=log, cwd=folder
            )
        self.url = self._wait_for_url()

    def _environment(self, folder: Path) -> dict[str, str]:
        own = {
            "JUPYTER_CONFIG_DIR": folder / "config",
            "JUPYTER_DATA_DIR": folder / "data",
            "JUPYTER_RUNTIME_DIR": self._runtime,
            "JUPYTERLAB_SETTINGS_DIR": folder / "settings",
            "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
            "IPYTHONDIR": folder / "ipython",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        }
        return {**os.environ, **{name: str(value) for name, value in own.items()}}

    def _wait_for_url(self) -> str:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            for path in self._runtime.glob("jpserver-*.json"):
                return json.loads(path.read_text())["url"]
            time.sleep(0.2)
        self.close()
        raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text()[-3000:]}")

    def close(self) -> None:
        """Stop the server and its kernels."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Notebook:
    """A notebook that is open in a browser page of its own."""

    def __init__(self, browser: Browser, lab: Lab, name: str) -> None:
        """name: of a file among the lab's notebooks."""
        self.name, self.path, self.asked_elsewhere = name, lab.notebooks / name, []
        self.page = browser.new_page(viewport=VIEW)
        self.page.set_default_timeout(20_000)
        self.page.on("request", self._note_request)
        self.page.goto(f"{lab.url}lab/tree/{name}?reset&token={lab.token}", timeout=START_SECONDS * 1000)
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        self.wait_until_idle()

    def _note_request(self, request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.hostname != "127.0.0.1":
            self.asked_elsewhere.append(request.url)

    def menu(self, *path: str) -> None:
        """Choose an entry of the menu bar."""
        self.page.locator("#jp-MainMenu").get_by_role("menuitem", name=path[0], exact=True).click()
        for name in path[1:]:
            self.page.locator(".lm-Menu").get_by_role("menuitem", name=name, exact=True).click()

    def run_all(self) -> None:
        """Run > Run All Cells, and wait for the end."""
        self.menu("Run", "Run All Cells")
        self.wait_until_idle(ran=True)

    def restart_and_run_all(self) -> float:
        """Restart the kernel and run all. Return the seconds until the first picture was to be seen."""
        self.page.evaluate("() => jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
        self.menu("Kernel", "Restart Kernel and Run All Cells…")
        self.page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
        start = time.perf_counter()
        self.pictures.first.wait_for(timeout=CELL_SECONDS * 1000)
        seconds = time.perf_counter() - start
        self.wait_until_idle(ran=True)
        return seconds

    def wait_until_idle(self, ran: bool = False) -> None:
        """Wait until the kernel is idle; with `ran`, until all code cells ran or one failed."""
        self.page.wait_for_function(_IDLE, arg=ran, timeout=CELL_SECONDS * 1000)

    @property
    def pictures(self) -> Locator:
        """The images in outputs."""
        return self.page.locator(".jp-OutputArea-output img")

    @property
    def errors(self) -> list[str]:
        """The text of each error output."""
        return self.page.locator(".jp-OutputArea-output[data-mime-type$='.error']").all_inner_texts()

    def cell(self, number: int) -> Locator:
        """The cell with this number, from 0 on."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def type_and_run(self, number: int, text: str) -> float:
        """Replace a cell's text and run it and the next cell, by keyboard. Return the seconds they took."""
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)
        prompt = self.cell(number + 1).locator(".jp-InputPrompt")
        before, start = prompt.inner_text(), time.perf_counter()
        for _ in range(2):
            self.page.keyboard.press("Shift+Enter")
        # An idle kernel alone says too little: the keys may not have reached it yet.
        expect(prompt).not_to_have_text(before)
        self.wait_until_idle()
        return time.perf_counter() - start

    def use_theme(self, theme: str) -> None:
        """Switch JupyterLab to "light" or "dark"."""
        self.page.evaluate(
            "name => jupyterapp.commands.execute('apputils:change-theme', {theme: name})", THEMES[theme]
        )
        light = str(theme == "light").lower()
        self.page.locator(f"body[data-jp-theme-light={light}]").wait_for(state="attached")
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def photograph(self, stem: Path) -> None:
        """Write the whole notebook as stem-00.png, stem-01.png ... from its top down."""
        self.page.set_viewport_size({**VIEW, "height": 1500})
        view = self.page.locator(".jp-WindowedPanel-outer")
        step = view.evaluate("element => element.clientHeight")
        for number in range(-(-view.evaluate("element => element.scrollHeight") // step)):
            view.evaluate("(element, top) => { element.scrollTop = top; }", number * step)
            self.page.screenshot(path=f"{stem}-{number:02}.png")
        self.page.set_viewport_size(VIEW)

    def close(self) -> None:
        """Close the page and forget changes."""
        self.page.close(run_before_unload=False)


# An idle kernel has nothing in its queue: a cell that waits shows its prompt as [*].
_IDLE = """ran => {
    const panel = jupyterapp.shell.currentWidget;
    const kernel = panel?.sessionContext?.session?.kernel;
    if (kernel?.status !== 'idle') return false;
    const prompts = [...panel.node.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(p => p.innerText);
    if (prompts.some(text => text.includes('*'))) return false;
    const failed = panel.node.querySelector("[data-mime-type$='.error']");
    return !ran || failed !== null || prompts.every(text => /\\d/.test(text));
}"""
