"""Real pages in a real Chromium: `make test-browser`.

Skipped where there is no Chromium, or the packages of requirements/browser.txt are not installed.
"""

import http.client
import importlib.util
import os
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import fleets
from browser import home as homes
from notyet import Ledger

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(items):
    """Skip the tests of this folder where something is missing; nothing is fetched."""
    missing = None
    if not _program():
        missing = "there is no Chromium (Debian: apt-get install chromium)"
    elif not all(map(importlib.util.find_spec, ("playwright", "axe_playwright_python"))):
        missing = "playwright and axe are not installed: make test-browser"
    for item in items:
        if missing and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=missing))


def _program():
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests."""
    from playwright.sync_api import sync_playwright

    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=_program(), args=as_root)
        yield running
        running.close()


@pytest.fixture(scope="session")
def _filled(tmp_path_factory):
    home = homes.Home(tmp_path_factory.mktemp("filled"))
    try:
        homes.fill(home)
        homes.set_times(home)
        yield home
    finally:
        home.end()


@pytest.fixture
def filled(_filled):
    """A home with a day's stops and a supervised agent at work; only to be read."""
    return _filled


@pytest.fixture
def home(tmp_path):
    """A home with an empty ledger, for tests that add to it."""
    (tmp_path / "home").mkdir()
    made = homes.Home(tmp_path / "home")
    yield made
    made.end()


class PageServer:
    """A `notyet page` that runs."""

    def __init__(self, home, *argv, folder=None):
        self.home, self._argv = home, argv
        self._folder = folder or home.folder
        self._start("--port", "0")

    def _start(self, *argv):
        self.process = self.home.start(self._folder, "page", "--no-open", *argv, *self._argv)
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.process.communicate(timeout=20)
        self.port = urlsplit(self.address).port
        self.origin = f"http://127.0.0.1:{self.port}"

    def open(self, tab, path="/"):
        """Open a screen in a tab, as the person to whom the page belongs."""
        token = urlsplit(self.address).query
        tab.goto(f"{self.origin}{path}{'&' if '?' in path else '?'}{token}")
        return tab

    def end(self):
        """End it, as Ctrl-C does."""
        self.process.send_signal(2)
        self.process.wait(timeout=20)

    def start_again(self):
        """Start another page on the same port."""
        self._start("--port", str(self.port))

    def ask(self, path):
        """Return the status of an answer to a stranger."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path)
        return connection.getresponse().status


@pytest.fixture
def page_server():
    """Start `notyet page` of a home: `page_server(home, "--read-only").open(tab, "/stops")`."""
    started = []

    def start(home, *argv, **options):
        started.append(PageServer(home, *argv, **options))
        return started[-1]

    yield start
    for server in started:
        server.home.end(server.process)


@pytest.fixture(scope="session")
def _filled_page(_filled):
    server = PageServer(_filled, folder=_filled.folder / "shop")
    yield server
    _filled.end(server.process)


@pytest.fixture
def filled_page(_filled_page):
    """A page of the filled ledger."""
    return _filled_page


@pytest.fixture(scope="session")
def fleet(cluster):
    """A fleet with three workers, two queues, a schedule and a result that waits."""
    made = fleets.Made(Ledger(cluster.url("shown")))
    fleets.fill(made)
    yield made
    made.ledger.close()


@pytest.fixture(scope="session")
def fleet_page(_filled, fleet, cluster):
    """A page of the fleet."""
    server = PageServer(_filled, "--ledger", cluster.url("shown"))
    yield server
    _filled.end(server.process)


@pytest.fixture(scope="session")
def saved(_filled, tmp_path_factory):
    """The filled ledger as one file."""
    path = tmp_path_factory.mktemp("saved") / "stops.html"
    done = _filled.start(_filled.folder, "page", "--save", str(path))
    assert done.communicate(timeout=60)[0].startswith(f"{path}: 19 stops, ")
    return path


@pytest.fixture
def troubles():
    """What went wrong in the tabs of a test, which fails if any is left at its end."""
    found = []
    yield found
    assert found == []


@pytest.fixture
def new_tab(browser, troubles):
    """Open a tab with nothing remembered: `new_tab(width=390, dark=True)`."""
    contexts = []

    def new_tab(*, width=1280, height=800, dark=False, **options):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        context.set_default_timeout(20_000)
        tab = context.new_page()
        _watch(tab, troubles)
        return tab

    yield new_tab
    for context in contexts:
        context.close()


@pytest.fixture
def tab(new_tab):
    """A tab of a desktop's width, in light colours."""
    return new_tab()


def _watch(tab, troubles):
    """Note errors and warnings of scripts, requests that fail or go elsewhere, and dialogs."""

    def on_console(message):
        if message.type in {"error", "warning"}:
            troubles.append(f"{message.type}: {message.text}")

    def on_request(request):
        place = urlsplit(request.url)
        if place.scheme not in {"data", "file"} and place.hostname != "127.0.0.1":
            troubles.append(f"a request left this machine: {request.url}")

    def on_failed(request):
        if request.failure != "net::ERR_ABORTED":  # another address was opened meanwhile
            troubles.append(f"{request.url} failed: {request.failure}")

    def on_dialog(dialog):
        troubles.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    tab.on("console", on_console)
    tab.on("pageerror", lambda error: troubles.append(f"a script failed: {error}"))
    tab.on("request", on_request)
    tab.on("requestfailed", on_failed)
    tab.on("dialog", on_dialog)


_GRAVE = {"serious", "critical"}


@pytest.fixture(scope="session")
def _axe():
    package = importlib.util.find_spec("axe_playwright_python")
    return (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def axe(_axe):
    """Check what a tab shows with axe-core; print the small faults, fail on the others."""

    def axe(tab):
        tab.evaluate(_axe)
        run = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
        found = [
            f"{fault['impact']}: {fault['id']}: {fault['help']}: {node['html'][:200]}"
            for fault in tab.evaluate(run)
            for node in fault["nodes"]
        ]
        grave = [line for line in found if line.partition(":")[0] in _GRAVE]
        print(*found, sep="\n")
        assert grave == []
        return found

    return axe


@pytest.fixture
def seconds_until():
    """Wait for a condition in a tab, and print how long that took: nothing depends on it."""

    def seconds_until(tab, condition, argument=None):
        started = time.monotonic()
        tab.wait_for_function(condition, arg=argument)
        seconds = time.monotonic() - started
        print(f"after {seconds:.2f} s: {condition}")
        return seconds

    return seconds_until
