"""A headless Chromium for tests, driven through its debugging pipe: keys and pointer are real ones."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
WAIT = 60.0  # seconds, on a busy machine
# a page needs no network, and a browser that looks for one may wait for it
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic")
DRAWN = "document.readyState === 'complete' && document.querySelectorAll('#bands path').length > 3"
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Tab": 9}


class Browser:
    """A headless Chromium that is told what to do in JSON, over two pipes."""

    def __init__(self, profile):
        reads, self.tell = os.pipe()
        self.hear, writes = os.pipe()

        def connect():
            copies = os.dup(reads), os.dup(writes)  # the originals may themselves be 3 or 4
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
            *QUIET,
        ]
        self.process = subprocess.Popen(
            [CHROMIUM, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self.count, self.rest, self.events = 0, b"", []

    def call(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        os.write(self.tell, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.hear], [], [], WAIT)
            assert ready, "no answer from Chromium"
            chunk = os.read(self.hear, 1 << 16)
            assert chunk, "Chromium has ended"
            self.rest += chunk
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def close(self):
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close")
        try:
            self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.tell)
        os.close(self.hear)


class Page:
    """One page, of a given size."""

    def __init__(self, browser, url, *, width=1280, height=900, reduced_motion=True, ready=DRAWN):
        self.browser, self.start = browser, len(browser.events)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"}
        self.call("Emulation.setEmulatedMedia", features=[motion])
        self.call("Page.navigate", url=url)
        self.until(ready)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression):
        end = time.monotonic() + WAIT
        while not self.ask(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def text(self, name):
        return self.ask(f"document.getElementById({name!r}).textContent")

    def number(self, name):
        return as_number(self.text(name))

    def press(self, name, key, times=1):
        self.ask(f"document.getElementById({name!r}).focus()")
        for _ in range(times):
            self.press_key(key)

    def press_key(self, key):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])

    def choose(self, name, position):
        """Keys select an entry of a select box."""
        self.press(name, "Home")
        self.press(name, "ArrowDown", position)

    def events(self, *methods):
        return [
            event["params"]
            for event in self.browser.events[self.start :]
            if event.get("sessionId") == self.session and event["method"] in methods
        ]

    def close(self):
        self.call("Page.close")


def unfold(page):
    """Opens what is folded: controls in it take no keys before."""
    page.ask(
        "new Promise((done) => { const fold = document.getElementById('learnt'); if (fold.open) done(true); "
        "fold.addEventListener('toggle', () => done(true), { once: true }); fold.open = true; })"
    )


def as_number(text):
    return float(text.replace("\u2212", "-").replace("\u221e", "inf").split("\u00a0")[0].split(" ")[0])
