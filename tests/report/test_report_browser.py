"""The page in a real browser: sliders, keyboard and pointer give the numbers that Python gives.

Without Chromium these are skipped.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import betabinom, binomtest
from sklearn.linear_model import LinearRegression

from report_browser import CHROMIUM, NAMES, Page, as_number
from report_pages import HOSTILE, fitted_alike, line_data, middle_ends, quick
from sosbands import SoSBandRegressor
from sosbands.conformal import conformal_rank
from sosbands.report import explore, render
from spelled import spelled

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"none of {', '.join(NAMES)} is installed")

IN_USE = "{coverage: data.coverage, score: 0}"
FAILED = "document.readyState === 'complete' && !document.getElementById('failure').hidden"


def of_data(expression):
    """An expression of the data that the page holds."""
    return f"readData().then((data) => {expression})"


@cache
def of_kind(kind):
    X, y = line_data()
    data = explore(X, y, estimator=quick(calibration=kind))
    return data, fitted_alike(data, X, y, quick(calibration=kind)), X, y


@pytest.mark.parametrize("broken", ["no base64!", "AAAA"])
def test_data_that_cannot_be_read_are_told(browser, tmp_path, line, broken):
    before, rest = render(line[0]).split('id="data">')
    (tmp_path / "page.html").write_text(f'{before}id="data">{broken}<{rest.partition("<")[2]}', encoding="utf-8")
    page = Page(browser, (tmp_path / "page.html").as_uri(), ready=FAILED)
    assert page.text("failure").startswith("This page has failed: ")
    page.close()


def test_labels_and_ends_that_are_drawn(show, line):
    page = show(line[0])
    labels = page.ask("ticks(1e6, 1e6 + 1, 5).map(([, label]) => label)")
    assert labels == ["1000000", "1000000.2", "1000000.4", "1000000.6", "1000000.8", "1000001"]
    assert page.ask("ticks(-3e-7, 2e-7, 5)[0][1]") == "\u22123e\u22127"
    ends = "endsOf([5, 5], {reach: [[1, 4], [2, 3]], units: %s}, %s)"
    assert page.ask(ends % ("[1, 1]", "[0.5, 0.25]")) == [[3.5, 7.25], [0.5, 8.25]]
    assert page.ask(ends % ("[1, 1]", "[-4, -1]")) == [[7, 7], [5, 7]]  # ends 8 and 6 cross: their midpoint
    assert page.ask(ends % ("[[1, 2], [0, 4]]", "[0.5, 0.25]")) == [[3.5, 7], [0, 9]]
    assert (
        page.ask(ends % ("[[1, 0], 1]", "[Infinity, Infinity]") + ".flat().map(String)")
        == ["-Infinity", "Infinity"] * 2
    )


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
@pytest.mark.filterwarnings("ignore::sosbands.exceptions.CrossedIntervalsWarning")
class TestSliders:
    def test_the_page_opens_at_the_step_in_use(self, show, line):
        data, X, y = line
        page = show(data)
        model = fitted_alike(data, X, y, quick())
        (ends,) = model.predict_interval(data.axes[0].grid[120:121, None])
        assert page.text("penalty-value") == "20"
        assert page.text("level-value") == "90\u00a0%"
        assert middle_ends(page) == pytest.approx(ends, abs=6e-4)
        assert page.number("read-center") == pytest.approx(model.predict(data.axes[0].grid[120:121, None])[0], abs=6e-4)
        assert page.text("read-x-name") == "heat"

    @pytest.mark.parametrize(("keys", "penalty"), [(["Home"], 0.0), (["End"], np.inf), (["ArrowRight"] * 2, 100.0)])
    def test_the_penalty_moves_the_band(self, show, line, keys, penalty):
        data, X, y = line
        page = show(data)
        before, drawn = middle_ends(page), page.ask("document.querySelector('.end-upper').getAttribute('d')")
        for key in keys:
            page.press("penalty", key)
        step = next(step for step in data.path.steps if step.symmetry_penalty == penalty)
        exact = fitted_alike(data, X, y, quick(symmetry_penalty=penalty, tol=1e-6))
        rms = exact.residual_rms_
        (ends,) = exact.predict_interval(data.axes[0].grid[120:121, None])
        assert as_number(page.text("penalty-value")) == penalty
        assert middle_ends(page) == pytest.approx(ends, abs=0.02 * rms)  # another solve of the same problem
        scores = np.sort(np.maximum(step.lower_scores, step.upper_scores))
        q = scores[int(np.ceil(0.9 * (len(scores) + 1) - 1e-9)) - 1]
        center, below, above = data.axes[0].prediction[120], step.curves[0][0][120], step.curves[0][1][120]
        assert middle_ends(page) == pytest.approx([center - below - q, center + above + q], abs=6e-4)
        assert max(np.abs(np.subtract(middle_ends(page), before))) > 0.05
        assert page.ask("document.querySelector('.end-upper').getAttribute('d')") != drawn
        assert f"{len(step.active_lower)} below, {len(step.active_upper)} above" in page.text("facts")
        assert page.text("facts").startswith("statusconvergedrelative gap")

    def test_bands_that_calibration_multiplies(self, show):
        X, y = line_data()
        settings = {"calibration": "asymmetric", "conformal_score": "scaled"}
        data = explore(X, y, estimator=quick(**settings), target_name="yield", feature_names=["heat"])
        page = show(data)
        page.press("level", "ArrowLeft", 5)
        model = fitted_alike(data, X, y, quick(**settings))
        (ends,) = model.predict_interval(data.axes[0].grid[120:121, None], 0.85)
        assert middle_ends(page) == pytest.approx(ends, abs=6e-4)
        row = model.evaluate(X[data.test.numbers], y[data.test.numbers], 0.85)
        assert page.number("width-value") == pytest.approx(row["mean_width"], rel=6e-4)
        words = page.ask("document.body.textContent")
        lower, upper = model.quantile(0.85)
        assert f"the reach of the lower multiplied by {lower:.3g}" in words
        assert f"the reach of the upper end multiplied by {upper:.3g}" in words

    @pytest.mark.parametrize(
        ("key", "times", "level"), [("Home", 1, 0.5), ("ArrowLeft", 5, 0.85), ("ArrowUp", 7, 0.97)]
    )
    def test_the_level_changes_the_width(self, show, line, key, times, level):
        data, X, y = line
        page = show(data)
        page.press("level", key, times)
        model = fitted_alike(data, X, y, quick())
        (ends,) = model.predict_interval(data.axes[0].grid[120:121, None], level)
        assert middle_ends(page) == pytest.approx(ends, abs=6e-4)
        row = model.evaluate(X[data.test.numbers], y[data.test.numbers], level)
        assert page.number("width-value") == pytest.approx(row["mean_width"], rel=6e-4)
        assert page.number("coverage-value") == pytest.approx(100 * row["coverage"], abs=0.051)
        sides = page.ask("[...document.querySelectorAll('#coverage text')].map((t) => t.textContent)")[-4:]
        assert sides[0] == "above lower end"
        assert as_number(sides[1]) == pytest.approx(100 * row["coverage_lower"], abs=0.051)
        assert as_number(sides[3]) == pytest.approx(100 * row["coverage_upper"], abs=0.051)
        empty = f"{row['n_empty']:.0f} of {len(data.test)} intervals are empty"
        assert (empty in page.text("width-words")) == (row["n_empty"] > 0)

    @pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
    @pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
    def test_what_is_shown_of_the_test_rows_is_what_python_gives(self, show, kind, level):
        data, model, X, y = of_kind(kind)
        page = show(data, f"#level={level}")
        y_test, n = y[data.test.numbers], len(data.test)
        lower, upper = model.predict_interval(X[data.test.numbers], level).T
        hits = int(np.sum((lower <= y_test) & (y_test <= upper)))
        expected = binomtest(hits, n).proportion_ci(method="wilson")
        assert f"({100 * expected.low:.0f}\u00a0% to {100 * expected.high:.0f}\u00a0%)" in page.text("coverage-words")
        side, m = level if kind == "symmetric" else (1 + level) / 2, model.n_calibration_
        k = conformal_rank(m, side)
        assert f"{k} of {m} in order" in page.text("level-words")
        chance = betabinom(n, k, m + 1 - k).ppf([0.025, 0.975]) / n
        keys = ["both"] if kind == "symmetric" else ["lower", "upper"]
        drawn = page.ask(of_data(f"chanceAt(data, data.levels.indexOf({level}))"))
        assert list(drawn) == keys
        assert all(drawn[key] == pytest.approx(chance, abs=1e-5) for key in keys)
        count = "(document.querySelector('#bands .%s')?.getAttribute('d').match(/M/g) || []).length"
        assert [page.ask(count % name) for name in ("inside", "outside")] == [hits, n - hits]
        below = f"{np.mean(model.predict(X[data.test.numbers]) - lower):.3g} below"
        assert below in page.text("width-words")
        order = np.argsort(X[data.test.numbers, 0])  # 30 test rows: two groups of 15
        step = f"pathAt(data, {IN_USE}).steps[{data.path.chosen}]"
        groups = page.ask(of_data(f"groupsAt(data, {step}, 0, data.levels.indexOf({level}))"))
        assert page.ask("document.querySelectorAll('#local .mark').length") == 4
        for rows, group in zip((order[:15], order[15:]), groups, strict=True):
            assert group["x"] == pytest.approx(X[data.test.numbers[rows], 0].mean(), abs=1e-4)
            over, under = int(np.sum(y_test[rows] >= lower[rows])), int(np.sum(y_test[rows] <= upper[rows]))
            for side_name, found in (("lower", over), ("upper", under)):
                ci = binomtest(found, 15).proportion_ci(method="wilson")
                assert group["found"][side_name]["value"] == pytest.approx(found / 15)
                assert group["found"][side_name]["range"] == pytest.approx([ci.low, ci.high], abs=1e-5)

    def test_too_few_rows_are_said_and_drawn(self, show, line):
        page = show(line[0], "#level=0.99")
        assert page.text("level-words") == (
            "99\u00a0% needs at least 99 calibration rows and there are 45: the intervals are infinite."
        )
        assert middle_ends(page) == (-np.inf, np.inf)
        assert page.text("coverage-value") == "100.0\u00a0%"
        assert page.text("width-value") == "\u221e"

    def test_asymmetric_calibration(self, show):
        data, model, _, _ = of_kind("asymmetric")
        page = show(data, "#level=0.8")
        (ends,) = model.predict_interval(data.axes[0].grid[120:121, None], 0.8)
        assert middle_ends(page) == pytest.approx(ends, abs=6e-4)
        lower, upper = model.quantile(0.8)
        assert f"{abs(lower):.4g}" in page.text("level-words")
        assert f"{abs(upper):.4g}" in page.text("level-words")

    def test_values_are_read_by_keyboard_and_by_pointer(self, show, line):
        data = line[0]
        page = show(data)
        page.press("inspect", "ArrowRight", 3)
        assert page.number("read-x") == pytest.approx(data.axes[0].grid[123], abs=1e-3)
        assert "interval" in page.ask("document.getElementById('inspect').getAttribute('aria-valuetext')")
        page.press("inspect", "End")
        assert page.number("read-x") == pytest.approx(data.axes[0].grid[-1], abs=1e-3)
        assert page.number("read-support") == pytest.approx(data.path.curve_support[0][-1], abs=0.006)
        box = page.ask(
            "(() => { const b = document.getElementById('bands').getBoundingClientRect(); return [b.x, b.y]; })()"
        )
        before = page.text("read-x")
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + 300, y=box[1] + 100)
        page.until(f"document.getElementById('read-x').textContent !== {before!r}")
        place = int(np.argmin(np.abs(data.axes[0].grid - page.number("read-x"))))
        assert 0 < place < 120
        assert page.number("read-center") == pytest.approx(data.axes[0].prediction[place], abs=6e-4)

    def test_the_address_remembers(self, show, line):
        page = show(line[0], "#penalty=inf&level=0.75")
        assert (page.text("penalty-value"), page.text("level-value")) == ("\u221e", "75\u00a0%")
        page.press("penalty", "ArrowLeft")
        assert page.ask("location.hash") == "#penalty=1000&level=0.75&coverage=1&score=added"
        page.ask("location.hash = 'penalty=7&level=nonsense'")
        page.until("document.getElementById('penalty-value').textContent === '5'")


class TestChoices:
    def test_each_feature_has_its_curve(self, show, three):
        data = three[0]
        page = show(data)
        assert page.ask("[...document.getElementById('axis').options].map((o) => o.textContent)") == [
            "prediction (test rows in order)",
            "a",
            HOSTILE,
            "c",
        ]
        step = data.path.steps[data.path.chosen]
        scores = np.sort(np.maximum(step.lower_scores, step.upper_scores))
        q = scores[int(np.ceil(0.9 * (len(scores) + 1) - 1e-9)) - 1]
        for position in (1, 2, 3):
            page.choose("axis", position)
            axis, curve = data.axes[position], step.curves[position]
            assert page.text("read-x-name") == axis.name
            expected = axis.prediction[60] - curve[0][60] - q, axis.prediction[60] + curve[1][60] + q
            assert middle_ends(page) == pytest.approx(expected, abs=6e-3)
        page.choose("axis", 0)
        order = np.argsort(data.test.prediction)
        row = order[(len(order) - 1) // 2]
        expected = data.test.prediction[row] - step.test[0][row] - q, data.test.prediction[row] + step.test[1][row] + q
        assert middle_ends(page) == pytest.approx(expected, abs=6e-3)
        assert page.text("read-x-name") == f"y of row {data.test.numbers[row]}"
        page.press("inspect", "ArrowRight")
        assert page.number("read-center") == pytest.approx(data.test.prediction[order[len(order) // 2]], abs=6e-3)

    def test_hostile_names_are_inert(self, show, three):
        page = show(three[0], "#axis=2")
        assert page.ask("document.title") == HOSTILE
        assert page.text("read-x-name") == HOSTILE
        assert page.ask("typeof window.harmed") == "undefined"
        assert page.ask("document.querySelectorAll('img').length") == 0
        assert page.ask("document.scripts.length") == 2

    def test_another_script_would_not_run(self, show, line):
        page = show(line[0])
        page.ask(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.harmed=1'}))"
        )
        assert page.ask("typeof window.harmed") == "undefined"
        (blocked,) = page.events("Log.entryAdded")
        assert "Content Security Policy" in blocked["entry"]["text"]
        page.start = len(page.browser.events)  # this trouble was wanted
        page.call("Page.reload")
        page.until("document.readyState === 'complete'")

    def test_marks_can_be_left_out_and_shaping_rows_are_marked(self, show, line):
        data = line[0]
        page = show(data)
        count = "(document.querySelector('#bands .%s')?.getAttribute('d').match(/M/g) || []).length"
        step = data.path.steps[data.path.chosen]
        assert page.ask(count % "learning") == len(data.learning)
        assert page.ask(count % "shapes-lower") == len(step.active_lower)
        assert page.ask(count % "inside") + page.ask(count % "outside") == len(data.test)
        page.ask("document.getElementById('show-learning').click()")
        page.ask("document.getElementById('show-shaping').click()")
        assert page.ask(count % "learning") == 0
        assert page.ask(count % "shapes-lower") == 0

    def test_places_without_data_are_grey(self, show):
        X, y = line_data()
        X = np.where(np.abs(X) < 0.4, X + 3, X)  # a gap
        page = show(explore(X, y, estimator=quick(lengthscale=0.1)))
        assert page.ask("document.querySelectorAll('#bands .nodata').length") >= 2
        assert "no data nearby" in page.text("legend")

    def test_the_slide_plays_and_the_way_back(self, show, line):
        page = show(line[0])
        assert page.ask("document.getElementById('choice').disabled")
        page.ask("document.getElementById('play').click()")
        assert page.text("penalty-value") == "0"
        page.until("document.getElementById('penalty-value').textContent === '5'")
        page.ask("document.getElementById('play').click()")
        page.ask("document.getElementById('choice').click()")
        assert page.text("penalty-value") == "20"

    def test_motion_only_where_it_is_welcome(self, show, line):
        path = "document.querySelector('.end-upper').getAttribute('d')"
        slider = "const s = document.getElementById('penalty')"
        jump = f"(() => {{ {slider}; s.value = 0; s.dispatchEvent(new Event('input')); return {path}; }})()"
        calm, lively = show(line[0]), show(line[0], reduced_motion=False)
        before = lively.ask(path)
        assert calm.ask(jump) != before
        assert lively.ask(jump) == before  # it sets off at the next frame
        lively.until(f"{path} === {calm.ask(path)!r}")

    def test_changes_are_read_out(self, show, line):
        page = show(line[0])
        page.press("penalty", "Home")
        page.until("document.getElementById('status').textContent.startsWith('Symmetry penalty 0, level 90')")
        assert page.ask("document.getElementById('status').getAttribute('aria-live')") == "polite"
        assert page.ask("document.getElementById('penalty').getAttribute('aria-valuetext')").startswith("0: Two indep")
        labelled = (
            "[...document.querySelectorAll('input,select,button')].filter((e) => !e.labels?.length && !e.textContent)"
        )
        assert page.ask(f"{labelled}.length") == 0


OVERLAPS = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll('svg[id]')) {
    const marks = [...svg.querySelectorAll(svg.id === 'coverage' ? 'text, .whisker' : 'text')];
    const boxes = marks.map((t) => [t.textContent, t.getBoundingClientRect()]);
    const frame = svg.getBoundingClientRect();
    boxes.forEach(([a, p], i) => {
      if (p.left < frame.left - 14 || p.right > frame.right + 14) found.push(['beyond ' + svg.id, a]);
      boxes.slice(i + 1).forEach(([b, q]) => {
        const apart = p.right <= q.left || q.right <= p.left || p.bottom <= q.top + 2 || q.bottom <= p.top + 2;
        if (!apart) found.push([svg.id, a, b]);
      });
    });
  }
  return found;
})()"""


SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


AUTOMATIC = {
    "base_scale": "forest",
    "noise_features": "prediction",
    "conformal_score": "added",
    "width_penalty": 30.0,
    "cv": 3,
}


@pytest.fixture(scope="module")
def automatic():
    X, y = line_data(160)
    model = SoSBandRegressor(LinearRegression(), **AUTOMATIC)
    return explore(X, y, estimator=model, target_name="yield", feature_names=["heat"]), X, y


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
@pytest.mark.filterwarnings("ignore::sosbands.exceptions.CrossedIntervalsWarning")
class TestAutomaticChoice:
    def test_intervals_in_units_of_a_base_scale(self, show, automatic):
        data, X, y = automatic
        page = show(data)
        model = fitted_alike(data, X, y, SoSBandRegressor(LinearRegression(), **AUTOMATIC))
        assert model.noise_.mean_lower > 0.1  # in base scales: there are bands to show
        for level, keys in ((0.9, 0), (0.8, 10), (0.6, 20)):
            page.press("level", "ArrowLeft", keys)
            (ends,) = model.predict_interval(data.axes[0].grid[120:121, None], level)
            assert middle_ends(page) == pytest.approx(ends, abs=6e-4)
            row = model.evaluate(X[data.test.numbers], y[data.test.numbers], level)
            assert page.number("width-value") == pytest.approx(row["mean_width"], rel=6e-4)
            assert page.number("coverage-value") == pytest.approx(100 * row["coverage"], abs=0.051)
            assert f"{abs(model.quantile(level)):.4g} times the base scale " in page.text("level-words")

    def test_other_penalties_keep_the_base_scale(self, show, automatic):
        data, X, y = automatic
        page = show(data)
        model = fitted_alike(data, X, y, SoSBandRegressor(LinearRegression(), **AUTOMATIC))
        fixed = {
            "lengthscale": model.noise_.lengthscale,
            "learning_coverage": model.noise_.settings.learning_coverage,
            "tol": 1e-6,
        }
        for key, penalty in (("Home", 0.0), ("End", np.inf)):
            page.press("penalty", key)
            settings = {**AUTOMATIC, **fixed, "symmetry_penalty": penalty}
            exact = fitted_alike(data, X, y, SoSBandRegressor(LinearRegression(), **spelled(**settings)))
            (ends,) = exact.predict_interval(data.axes[0].grid[120:121, None])
            assert middle_ends(page) == pytest.approx(ends, abs=0.02 * exact.residual_rms_)

    def test_the_decision_is_told_with_its_reasons(self, show, automatic):
        data, X, y = automatic
        page = show(data)
        report = fitted_alike(data, X, y, SoSBandRegressor(LinearRegression(), **AUTOMATIC)).tuning_
        assert page.text("decision") == report.sentence
        assert page.text("decision-title") == "What the data chose"
        reasons = "[...document.querySelectorAll('#reasons li')].map((item) => item.textContent)"
        assert page.ask(reasons) == list(report.reasons)
        assert len(report.reasons) >= 2
        assert not page.ask("document.getElementById('why').hidden")
        assert page.text("why-words").startswith("Each setting with its value")
        settings = "base scale forest, noise features prediction, width penalty 30, learning coverage"
        assert f"{settings} {report.learning_coverage:.4g}, added score." in page.text("decision-numbers")

    def test_a_choice_that_does_not_score_best_is_explained(self, show, automatic):
        page = show(replace(automatic[0], reasons=("symmetry penalty 300: with inf, 0.9 % better, too little",)))
        assert page.text("reasons") == "symmetry penalty 300: with inf, 0.9 % better, too little"
        assert page.text("why-words").startswith("What is simpler, or follows skew that was found, is taken even if ")

    def test_what_was_given_needs_no_reasons(self, show, line):
        page = show(line[0])
        assert page.text("decision-title") == "What was given"
        assert page.ask("document.getElementById('why').hidden")


@pytest.fixture(scope="module")
def far():
    X, y = line_data()
    return explore(X, y + 1e6, estimator=quick(), target_name="a rather long name " * 5), X, y


@pytest.mark.parametrize("name", ["line", "three", "far", "automatic"])
def test_everything_fits(show, request, name):
    page = show(request.getfixturevalue(name)[0])
    for width, height in ((1280, 900), (820, 1100), (390, 844), (320, 640)):
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.until(f"window.innerWidth === {width}")
        for address in (
            "axis=0&penalty=20&level=0.9",
            "axis=3&penalty=0&level=0.5",
            "penalty=inf&level=0.99&coverage=0.5&score=scaled",
        ):
            page.ask(f"location.hash = {address!r}")
            assert page.ask(SETTLED)
            assert page.ask("document.documentElement.scrollWidth") <= width
            assert page.ask(OVERLAPS) == []
            assert page.ask(
                "[...document.querySelectorAll('.readout dd')].every((e) => e.scrollWidth <= e.clientWidth)"
            )
            slider = page.ask("document.getElementById('penalty').getBoundingClientRect().bottom")
            assert width == 320 or slider < height  # chart and slider are seen together
