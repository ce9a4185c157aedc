"""Pages in one headless Chromium."""

import numpy as np
import pytest

from report_browser import Browser, Page
from report_pages import HOSTILE, line_data, quick
from sosbands.report import explore, render

TROUBLE = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    running = Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens pages; when the test ends they must have been without trouble."""
    opened = []

    def open_page(data, address="", **options):
        file = tmp_path / "page.html"
        file.write_text(render(data), encoding="utf-8")
        opened.append(Page(browser, file.as_uri() + address, **options))
        return opened[-1]

    yield open_page
    for page in opened:
        assert page.events(*TROUBLE) == []
        requests = [event["request"]["url"] for event in page.events("Network.requestWillBeSent")]
        assert requests
        assert all(url.startswith("file:") for url in requests)
        assert page.ask("document.getElementById('failure').hidden")
        page.close()


@pytest.fixture(scope="session")
def line():
    X, y = line_data()
    data = explore(X, y, estimator=quick(), target_name="yield", feature_names=["heat"])
    return data, X, y


@pytest.fixture(scope="session")
def three():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, (120, 3))
    y = X @ [1.0, -2.0, 0.5] + X[:, 0] * rng.exponential(size=120)
    data = explore(X, y, estimator=quick(lengthscale=2.0), feature_names=["a", HOSTILE, "c"], title=HOSTILE)
    return data, X, y
