"""Learning coverage, score and explanations of the page in a real browser: the numbers and words that Python gives."""

from dataclasses import replace

import numpy as np
import pytest

from report_browser import CHROMIUM, NAMES
from report_pages import fitted_alike, middle_ends, quick
from sosbands import SoSBandRegressor
from sosbands.report import explore
from sosbands.report.payload import payload

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=f"none of {', '.join(NAMES)} is installed"),
    pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning"),
    pytest.mark.filterwarnings("ignore::sosbands.exceptions.CrossedIntervalsWarning"),
]

CHECKED = "[...document.querySelectorAll('#scores input')].filter((box) => box.checked).map((box) => box.id)"
FACTORS = "[...document.querySelectorAll('#factors tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"


def check_shown(page, data, model, X, y, level=0.9, tolerance=6e-4):
    """Ends, width and coverage on the page are those of the model."""
    (ends,) = model.predict_interval(data.axes[0].grid[120:121, None], level)
    assert middle_ends(page) == pytest.approx(ends, abs=tolerance)
    row = model.evaluate(X[data.test.numbers], y[data.test.numbers], level)
    assert page.number("width-value") == pytest.approx(row["mean_width"], rel=tolerance)
    assert page.number("coverage-value") == pytest.approx(100 * row["coverage"], abs=0.051)


def test_the_score_changes_calibration(show, line):
    data, X, y = line
    page = show(data, "#level=0.85")
    assert page.ask(CHECKED) == ["score-added"]
    page.press("score-added", "ArrowRight")
    assert page.ask(CHECKED) == ["score-scaled"]
    model = fitted_alike(data, X, y, quick(conformal_score="scaled"))
    check_shown(page, data, model, X, y, 0.85)
    assert f"the reach of both ends multiplied by {model.quantile(0.85):.4g}" in page.text("level-words")
    assert page.text("score-words") == "Calibration multiplies both bands by one number, everywhere."
    assert page.text("criterion") == "criterion not evaluated for these settings"
    assert page.ask("location.hash") == "#penalty=20&level=0.85&coverage=1&score=scaled"
    page.until("document.getElementById('status').textContent.includes('learning coverage 100\u00a0%, scaled score: ')")
    local = model.predict_interval(X[data.test.numbers], 0.85)
    order = np.argsort(X[data.test.numbers, 0])[:15]  # the first of two groups
    over = np.mean(y[data.test.numbers][order] >= local[order, 0])
    found = page.ask(
        "readData().then((data) => groupsAt(data, "
        f"pathAt(data, {{coverage: data.coverage, score: 1}}).steps[{data.path.chosen}], 0, "
        "data.levels.indexOf(0.85))[0].found.lower.value)"
    )
    assert found == pytest.approx(over)


def test_the_learning_coverage_moves_the_bands(show, line):
    data, X, y = line
    page = show(data)
    assert page.text("learning-value") == "100\u00a0%"
    assert page.text("learning-words").endswith(
        "cover all learning rows, before calibration. This is what the model uses."
    )
    page.press("learning", "Home")
    path = data.coverages[0]
    assert (page.text("learning-value"), path.learning_coverage) == ("50\u00a0%", 0.5)
    assert page.ask("document.getElementById('penalty').max") == str(len(path.steps) - 1)
    assert page.text("penalty-value") == "20"  # is solved at every learning coverage
    step = next(step for step in path.steps if step.symmetry_penalty == 20)
    scores = np.sort(np.maximum(step.lower_scores, step.upper_scores))
    q = scores[int(np.ceil(0.9 * (len(scores) + 1) - 1e-9)) - 1]
    center, below, above = data.axes[0].prediction[120], step.curves[0][0][120], step.curves[0][1][120]
    assert middle_ends(page) == pytest.approx([center - below - q, center + above + q], abs=6e-4)
    width = np.mean(np.sum(step.test, axis=0) + 2 * q)
    assert page.number("width-value") == pytest.approx(width, rel=6e-4)
    assert f"{len(step.active_lower)} below, {len(step.active_upper)} above" in page.text("facts")
    assert f"The model uses 100\u00a0%; elsewhere only {len(path.steps)} symmetry" in page.text("learning-words")
    assert page.ask("location.hash") == "#penalty=20&level=0.9&coverage=0.5&score=added"


def test_the_penalty_is_kept_and_the_way_back(show, line):
    page = show(line[0], "#penalty=50&coverage=0.8&score=scaled")
    assert page.text("learning-value") == "80\u00a0%"
    assert page.text("penalty-value") == "20"  # the nearest that is solved there
    page.press("penalty", "ArrowRight")
    assert page.text("penalty-value") == "200"
    page.press("learning", "End")
    assert (page.text("learning-value"), page.text("penalty-value")) == ("100\u00a0%", "200")
    assert page.ask("location.hash") == "#penalty=200&level=0.9&coverage=1&score=scaled"
    page.ask("document.getElementById('choice').click()")
    assert (page.text("penalty-value"), page.ask(CHECKED)) == ("20", ["score-added"])
    assert page.ask("document.getElementById('choice').disabled")
    page.press("learning", "ArrowLeft")
    assert not page.ask("document.getElementById('choice').disabled")


def test_bands_of_constant_width(show):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 1))
    plain = {"base_scale": "none", "noise_features": "inputs", "symmetry_penalty": np.inf, "cv": 3}
    y = X[:, 0] + rng.choice([-1.0, 1.0], 100) * rng.uniform(0.5, 1.5, 100)  # tails that vary little
    data = explore(X, y, estimator=SoSBandRegressor(lambda X: X[:, 0], **plain))
    page = show(data)
    own = page.text("learning-value")
    page.press("learning", "Home")
    words = page.text("learning-words")
    assert words.endswith("symmetry penalties are solved.")
    assert f"Calibration makes up for it: the intervals are as at {own}." in words
    assert page.text("score-words").endswith("Both scores give the same intervals here.")


class TestWhy:
    def test_a_click_on_a_test_row_explains_it(self, show, three):
        data, X, y = three
        page = show(data, "#axis=1")
        rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
        model = quick(lengthscale=2.0, random_state=0).fit(X[rows], y[rows])
        why = model.explain(X[data.test.numbers])
        i = int(np.argmax(why.width))
        spot = (
            "(() => { const box = document.getElementById('bands').getBoundingClientRect(); "
            "const { cx, cy } = document.querySelector('#bands .picked'); "
            "return [box.x + cx.baseVal.value, box.y + cy.baseVal.value]; })()"
        )
        page.ask(f"location.hash = 'axis=1&row={data.test.numbers[i]}'")
        page.until(f"document.getElementById('explain-title').textContent.includes('row {data.test.numbers[i]} this')")
        left, top = page.ask(spot)
        page.ask(f"location.hash = 'axis=1&row={data.test.numbers[i - 1]}'")
        page.until(f"document.getElementById('explain-title').textContent.includes('{data.test.numbers[i - 1]} this')")
        for kind in ("mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=left, y=top, button="left", clickCount=1)
        assert page.text("explain-title") == f"Why is the interval of row {data.test.numbers[i]} this wide?"
        stored = payload(data)["why"]
        words = page.text("explain-words")
        assert words == stored["rows"][i]["words"]
        assert words.startswith(f"This interval is {why.times_typical[i]:.2g} times as wide as the typical one.")
        factors = page.ask(FACTORS)
        assert [row[0] for row in factors] == [stored["names"][k] for k, _ in stored["rows"][i]["factors"]]
        assert factors[0] == ["band", "", f"\u00d7{np.exp(why.band[i]):.3g}"]
        assert page.ask("location.hash").endswith(f"&row={data.test.numbers[i]}")
        assert page.text("explain-head") == f"width {why.width[i]:.4g}, \u00d7{why.times_typical[i]:.3g} the typical"

    def test_what_is_read_by_keyboard_is_explained(self, show, three):
        data = three[0]
        page = show(data)
        stored = payload(data)["why"]["rows"]
        order = np.argsort(data.test.prediction)
        page.press("inspect", "ArrowRight", 2)
        row = order[(len(order) - 1) // 2 + 2]
        assert page.text("explain-words") == stored[row]["words"]
        assert page.text("read-x-name") == f"y of row {data.test.numbers[row]}"
        page.choose("axis", 3)  # a curve: the nearest row along it
        page.press("inspect", "Home")
        first = int(np.argmin(data.test.positions[3]))
        assert page.text("explain-words") == stored[first]["words"]
        assert page.text("explain-where") == ""
        page.press("level", "ArrowLeft")
        assert page.text("explain-where") == (
            "Explained at the settings given and 90\u00a0%: the controls are elsewhere."
        )

    def test_a_narrow_page_leads_there(self, show, line):
        page = show(line[0], width=390, height=844)
        assert page.text("jump") == page.text("explain-title")
        page.ask("document.getElementById('jump').click()")
        box = page.ask(
            "(() => { const b = document.getElementById('explain').getBoundingClientRect(); return b.top; })()"
        )
        assert 0 <= box < 844
        wide = show(line[0])
        assert wide.ask("getComputedStyle(document.getElementById('jump')).display") == "none"

    def test_rows_that_are_not_explained(self, show, line):
        page = show(line[0], "#level=0.99")
        assert "controls are elsewhere" in page.text("explain-where")  # infinite at 99 %, explained at 90 %
        page = show(replace(line[0], why=None))  # infinite at the level asked for
        assert page.ask("document.getElementById('explain').hidden")
        assert page.ask("document.getElementById('jump').hidden")
        page.press("inspect", "End")
        assert page.ask("document.querySelectorAll('.picked').length") == 0
