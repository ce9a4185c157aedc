"""The page in a real browser: sliders, keyboard and pointer give the numbers and words that Python gives.

Without Chromium these are skipped.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import betabinom, binomtest
from sklearn.linear_model import LinearRegression

from report_browser import CHROMIUM, NAMES, Page, as_number, unfold
from report_pages import HOSTILE, QUIET, fitted_alike, line_data, middle_ends, quick
from sosbands import SoSBandRegressor
from sosbands.conformal import conformal_rank
from sosbands.report import explore, render
from sosbands.report.calibrated import groups_along
from sosbands.report.payload import payload

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason=f"none of {', '.join(NAMES)} is installed"), *QUIET]

COUNT = "(document.querySelector('#bands .%s')?.getAttribute('d').match(/M/g) || []).length"
TEXTS = "[...document.querySelectorAll('%s')].map((each) => each.textContent)"
CHECKED = "[...document.querySelectorAll('#scores input')].filter((box) => box.checked).map((box) => box.id)"
FAILED = "document.readyState === 'complete' && !document.getElementById('failure').hidden"
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
PICKED = """(() => {
  const box = document.getElementById('bands').getBoundingClientRect();
  const { cx, cy } = document.querySelector('#bands .picked');
  return [box.x + cx.baseVal.value, box.y + cy.baseVal.value];
})()"""
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
AUTOMATIC = {"base_scale": "forest", "noise_features": "prediction", "conformal_score": "added", "width_penalty": 30.0}
KINDS = {"symmetric": {}, "asymmetric": {"calibration": "asymmetric", "conformal_score": "scaled"}}


def check_shown(page, data, model, X, y, level):
    """Ends, width and coverage on the page are those of the model; what `evaluate` gives."""
    (ends,) = model.predict_interval(data.axes[0].grid[120:121, None], level)
    assert middle_ends(page) == pytest.approx(ends, abs=6e-4)
    row = model.evaluate(X[data.test.numbers], y[data.test.numbers], level)
    assert page.number("width-value") == pytest.approx(row["mean_width"], rel=6e-4)
    assert page.number("coverage-value") == pytest.approx(100 * row["coverage"], abs=0.051)
    texts = page.ask(TEXTS % "#coverage text")[-4:]
    assert texts[::2] == ["not below", "not above"]
    shares = [100 * row["coverage_lower"], 100 * row["coverage_upper"]]
    assert [as_number(text) for text in texts[1::2]] == pytest.approx(shares, abs=0.051)
    empty = f"{row['n_empty']:.0f} of {len(data.test)} intervals are empty"
    assert (empty in page.text("width-words")) == (row["n_empty"] > 0)
    for q in np.unique(np.abs(model.quantile(level))):
        assert f"{q:.4g}" in page.text("quantile-words")


def check_step(page, data, step):
    """What is shown are the bands of the step with added quantiles at 90 %."""
    scores = np.sort(np.maximum(step.lower_scores, step.upper_scores))
    q = scores[int(np.ceil(0.9 * (len(scores) + 1) - 1e-9)) - 1]
    center, below, above = data.axes[0].prediction[120], step.curve[0][120], step.curve[1][120]
    assert middle_ends(page) == pytest.approx([center - below - q, center + above + q], abs=6e-4)
    assert page.number("width-value") == pytest.approx(np.mean(np.sum(step.test, axis=0) + 2 * q), rel=6e-4)
    assert f"{len(step.active_lower)} below, {len(step.active_upper)} above" in page.text("facts")


@cache
def of_kind(kind):
    X, y = line_data()
    data = explore(X, y, estimator=quick(**KINDS[kind]))
    return data, fitted_alike(data, X, y, quick(**KINDS[kind])), X, y


@pytest.fixture(scope="module")
def automatic():
    X, y = line_data(160)
    model = SoSBandRegressor(LinearRegression(), cv=3, **AUTOMATIC)
    return explore(X, y, estimator=model, target_name="yield", feature_names=["heat"]), X, y


@pytest.fixture(scope="module")
def far():
    X, y = line_data()
    return explore(X, y + 1e6, estimator=quick(), target_name="a rather long name " * 5), X, y


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
    infinite = page.ask(ends % ("[[1, 0], 1]", "[Infinity, Infinity]") + ".flat().map(String)")
    assert infinite == ["-Infinity", "Infinity"] * 2


class TestTheLevel:
    def test_it_is_the_first_control_and_takes_keys(self, show, line):
        data, X, y = line
        page, model = show(data), fitted_alike(data, X, y, quick())
        page.press_key("Tab")
        assert page.ask("document.activeElement.id") == "level"
        assert (page.text("penalty-value"), page.text("level-value")) == ("20", "90\u00a0%")
        assert not page.ask("document.getElementById('learnt').open")
        assert page.ask("['elsewhere', 'why'].every((id) => document.getElementById(id).hidden)")
        assert page.text("decision-title") == "What was given"  # which needs no reasons
        assert page.number("read-center") == pytest.approx(model.predict(data.axes[0].grid[120:121, None])[0], abs=6e-4)
        assert page.text("read-x-name") == "heat"
        for key, times, level in (("ArrowLeft", 0, 0.9), ("ArrowUp", 5, 0.95), ("Home", 1, 0.5)):
            page.press("level", key, times)
            check_shown(page, data, model, X, y, level)

    @pytest.mark.slow_browser
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
    def test_what_is_shown_of_the_test_rows_is_what_python_gives(self, show, kind, level):
        data, model, X, y = of_kind(kind)
        page = show(data, f"#level={level}")
        check_shown(page, data, model, X, y, level)
        y_test, n = y[data.test.numbers], len(data.test)
        lower, upper = model.predict_interval(X[data.test.numbers], level).T
        inside = (lower <= y_test) & (y_test <= upper)
        hits = int(inside.sum())
        expected = binomtest(hits, n).proportion_ci(method="wilson")
        assert f"({100 * expected.low:.0f}\u00a0% to {100 * expected.high:.0f}\u00a0%)" in page.text("coverage-words")
        side, m = level if kind == "symmetric" else (1 + level) / 2, model.n_calibration_
        k = conformal_rank(m, side)
        assert f"{k} of {m} in order" in page.text("quantile-words")
        chance = betabinom(n, k, m + 1 - k).ppf([0.025, 0.975]) / n
        drawn = page.ask(f"readData().then((data) => chanceAt(data, data.levels.indexOf({level})))")
        assert list(drawn) == (["both"] if kind == "symmetric" else ["lower", "upper"])
        assert all(found == pytest.approx(chance, abs=1e-5) for found in drawn.values())
        assert [page.ask(COUNT % name) for name in ("inside", "outside")] == [hits, n - hits]
        below, above = np.sum(y_test < lower), np.sum(y_test > upper)
        words = f"{hits} of {n} test rows; {below} lie below their interval, {above} above."
        assert page.text("coverage-words").startswith(words)
        narrow, wide = np.quantile(upper - lower, [0.1, 0.9], method="inverted_cdf")
        if wide - narrow > 0.002 * wide:
            assert f"Eight of ten are {narrow:.3g} to {wide:.3g} wide." in page.text("width-words")
        assert f"{np.mean(model.predict(X[data.test.numbers]) - lower):.3g} below" in page.text("width-words")
        groups = page.ask(
            "readData().then((data) => groupsAt(data, pathAt(data, data)"
            f".steps[{data.path.chosen}], 0, data.levels.indexOf({level})))"
        )
        assert page.ask("document.querySelectorAll('#local .mark').length") == len(groups) == 2
        for rows, group in zip(groups_along(data.test.positions[0]), groups, strict=True):
            ci = binomtest(int(inside[rows].sum()), len(rows)).proportion_ci(method="wilson")
            assert group["value"] == pytest.approx(inside[rows].mean())
            assert group["range"] == pytest.approx([ci.low, ci.high], abs=1e-5)

    def test_too_few_rows_are_said_and_drawn(self, show, line):
        page = show(line[0], "#level=0.99")
        words = "99\u00a0% needs at least 99 calibration rows and there are 30: the intervals are infinite."
        assert page.text("level-words") == words
        assert page.text("quantile-words") == ""
        assert middle_ends(page) == (-np.inf, np.inf)
        assert page.text("coverage-value") == "100.0\u00a0%"
        assert page.text("width-value") == "\u221e"
        assert "controls are elsewhere" in page.text("explain-where")  # explained at 90 %

    def test_groups_that_hold_less_are_named_and_rows_far_away(self, show):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (400, 1))
        y = X[:, 0] + np.where(X[:, 0] > 0.5, 5.0, 0.5) * rng.normal(size=400)
        data = explore(X, y, estimator=quick(lengthscale=np.inf), feature_names=["dose"])
        page = show(data, "#level=0.8")
        model = fitted_alike(data, X, y, quick(lengthscale=np.inf))
        ends, test = model.predict_interval(X[data.test.numbers], 0.8), data.test
        inside = (ends[:, 0] <= test.y) & (test.y <= ends[:, 1])
        expected = {}
        for rows in groups_along(test.positions[0]):
            high = binomtest(int(inside[rows].sum()), len(rows)).proportion_ci(method="wilson").high
            x = test.positions[0][rows]
            words = f"dose {x.min():.2f} to {x.max():.2f}: {100 * inside[rows].mean():.0f}\u00a0% of {len(rows)}"
            expected |= {words: high} if high < 0.8 else {}
        assert 0 < len(expected) < 4
        assert page.text("where-value") == f"{len(expected)} of 6"
        assert page.text("where-groups") == "".join(sorted(expected, key=expected.get))  # the worst first
        assert page.ask("document.querySelectorAll('#local .mark.short').length") == len(expected)
        assert page.text("far-words") == "No test row lies far from the rows learnt from."
        away = replace(data.path, test_support=np.zeros(100))
        coverages = tuple(away if each is data.path else each for each in data.coverages)
        page = show(replace(data, path=away, coverages=coverages))
        assert page.text("far-words").startswith("100 of 100 test rows lie far from the rows learnt from")


class TestHowItWasLearnt:
    @pytest.mark.parametrize(("keys", "penalty"), [(["Home"], 0.0), (["End"], np.inf), (["ArrowRight"] * 2, 100.0)])
    def test_the_penalty_moves_the_band(self, show, line, keys, penalty):
        data = line[0]
        page = show(data)
        unfold(page)
        before, drawn = middle_ends(page), page.ask("document.querySelector('.end-upper').getAttribute('d')")
        for key in keys:
            page.press("penalty", key)
        assert as_number(page.text("penalty-value")) == penalty
        check_step(page, data, next(step for step in data.path.steps if step.symmetry_penalty == penalty))
        assert max(np.abs(np.subtract(middle_ends(page), before))) > 0.05
        assert page.ask("document.querySelector('.end-upper').getAttribute('d')") != drawn
        assert page.text("facts").startswith("statusconvergedrelative gap")

    def test_the_learning_coverage_moves_the_bands(self, show, line):
        data = line[0]
        page = show(data)
        unfold(page)
        words = "cover all learning rows, before calibration. This is what the model uses."
        assert page.text("learning-words").endswith(words)
        page.press("learning", "Home")
        path = data.coverages[0]
        assert (page.text("learning-value"), path.learning_coverage) == ("50\u00a0%", 0.5)
        assert page.ask("document.getElementById('penalty').max") == str(len(path.steps) - 1)
        assert page.text("penalty-value") == "20"  # is solved at every learning coverage
        check_step(page, data, next(step for step in path.steps if step.symmetry_penalty == 20))
        assert f"The model uses 100\u00a0%; elsewhere only {len(path.steps)} symmetry" in page.text("learning-words")
        assert page.ask("location.hash") == "#level=0.9&penalty=20&coverage=0.5&score=added"

    def test_the_address_remembers_and_the_way_back(self, show, line):
        data, X, y = line
        page = show(data, "#penalty=50&level=0.75&coverage=0.8&score=scaled")
        assert page.ask("document.getElementById('learnt').open")  # where the way back is
        assert page.text("elsewhere").startswith("These are not the model\u2019s own settings: symmetry penalty 20, ")
        assert (page.text("penalty-value"), page.text("learning-value")) == ("20", "80\u00a0%")  # the nearest solved
        page.press("penalty", "ArrowRight")
        assert page.text("penalty-value") == "200"
        page.press("learning", "End")
        assert (page.text("learning-value"), page.text("penalty-value")) == ("100\u00a0%", "200")
        assert page.ask("location.hash") == "#level=0.75&penalty=200&coverage=1&score=scaled"
        page.ask("document.getElementById('choice').click()")
        assert (page.text("penalty-value"), page.text("level-value")) == ("20", "75\u00a0%")
        assert page.ask(CHECKED) == ["score-added"]
        assert page.ask("document.getElementById('choice').disabled")
        page.press("score-added", "ArrowRight")
        assert page.ask(CHECKED) == ["score-scaled"]
        assert page.text("score-words") == "Calibration multiplies both bands by one number, everywhere."
        model = fitted_alike(data, X, y, quick(conformal_score="scaled"))
        check_shown(page, data, model, X, y, 0.75)
        page.ask("location.hash = 'penalty=7&level=nonsense'")
        page.until("document.getElementById('penalty-value').textContent === '5'")
        assert not page.ask("document.getElementById('choice').disabled")

    def test_bands_of_constant_width(self, show):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (100, 1))
        plain = {"base_scale": "none", "noise_features": "inputs", "symmetry_penalty": np.inf, "cv": 3}
        y = X[:, 0] + rng.choice([-1.0, 1.0], 100) * rng.uniform(0.5, 1.5, 100)  # tails that vary little
        page = show(explore(X, y, estimator=SoSBandRegressor(lambda X: X[:, 0], **plain)))
        unfold(page)
        own = page.text("learning-value")
        page.press("learning", "Home")
        words = page.text("learning-words")
        assert words.endswith("symmetry penalties are solved.")
        assert f"Calibration makes up for it: the intervals are as at {own}." in words
        assert page.text("score-words").endswith("Both scores give the same intervals here.")
        assert "All are equally wide." in page.text("width-words")

    def test_an_automatic_choice_in_units_of_a_base_scale_with_its_reasons(self, show, automatic):
        data, X, y = automatic
        page, better = show(data), ("symmetry penalty 300: with inf, 0.9 % better, too little",)
        model = fitted_alike(data, X, y, SoSBandRegressor(LinearRegression(), cv=3, **AUTOMATIC))
        assert model.noise_.mean_lower > 0.1  # in base scales: there are bands to show
        for level, keys in ((0.9, 0), (0.6, 30)):
            page.press("level", "ArrowLeft", keys)
            check_shown(page, data, model, X, y, level)
            assert f"{abs(model.quantile(level)):.4g} times the base scale " in page.text("quantile-words")
        report = model.tuning_
        assert page.text("decision") == report.sentence
        assert page.text("decision-title") == "What the data chose"
        assert page.ask(TEXTS % "#reasons li") == list(report.reasons)
        assert len(report.reasons) >= 2
        assert page.text("why-words").startswith("Each setting with its value")
        settings = "base scale forest, noise features prediction, width penalty 30, learning coverage"
        assert f"{settings} {report.learning_coverage:.4g}, added score." in page.text("decision-numbers")
        assert "The data\u2019s choice was made on learning rows" in page.text("promise")
        page = show(replace(data, reasons=better))  # a choice that does not score best
        assert page.text("why-words").startswith("What is simpler, or follows skew that was found, is taken even if ")


class TestPictures:
    def test_rows_of_several_features_stand_side_by_side_with_their_own_intervals(self, show, three):
        data, X, y = three
        page = show(data)
        assert page.ask(TEXTS % "#axis option") == ["prediction", "a", HOSTILE, "c"]
        model = fitted_alike(data, X, y, quick(lengthscale=2.0))
        ends, n = model.predict_interval(X[data.test.numbers]), len(data.test)
        inside = (ends[:, 0] <= data.test.y) & (data.test.y <= ends[:, 1])
        for position in (0, 1, 3):
            page.choose("axis", position)
            order = np.lexsort([data.test.prediction, data.test.positions[position]])
            row = order[(n - 1) // 2]
            assert page.text("read-x-name") == f"true (row {data.test.numbers[row]})"
            assert middle_ends(page) == pytest.approx(ends[row], abs=6e-3)
            assert page.number("read-x") == pytest.approx(y[data.test.numbers[row]], abs=6e-3)
            marks = [page.ask(COUNT % name) for name in ("bar-lower", "inside", "outside", "learning")]
            assert marks == [n, inside.sum(), n - inside.sum(), 0]
        places = data.test.positions[3]
        assert {f"{places.min():.2f}", f"{places.max():.2f}"} <= set(page.ask(TEXTS % "#bands text"))
        page.ask("document.getElementById('bands').style.width = '150px'")  # bars that there is no room for
        page.press("level", "ArrowLeft")
        assert page.ask(COUNT % "bar-lower") == page.ask(COUNT % "inside") + page.ask(COUNT % "outside") < 30

    def test_values_are_read_by_keyboard_and_by_pointer(self, show, line):
        data = line[0]
        page = show(data)
        page.press("inspect", "ArrowRight", 3)
        assert page.number("read-x") == pytest.approx(data.axes[0].grid[123], abs=1e-3)
        assert "interval" in page.ask("document.getElementById('inspect').getAttribute('aria-valuetext')")
        page.press("inspect", "End")
        assert page.number("read-x") == pytest.approx(data.axes[0].grid[-1], abs=1e-3)
        support = data.path.curve_support[-1]
        assert page.text("read-support") == f"{'little' if support < 0.5 else 'enough'} ({support:.2f})"
        box = "(() => { const b = document.getElementById('bands').getBoundingClientRect(); return [b.x, b.y]; })()"
        (left, top), before = page.ask(box), page.text("read-x")
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 300, y=top + 100)
        page.until(f"document.getElementById('read-x').textContent !== {before!r}")
        place = int(np.argmin(np.abs(data.axes[0].grid - page.number("read-x"))))
        assert 0 < place < 120
        assert page.number("read-center") == pytest.approx(data.axes[0].prediction[place], abs=6e-4)

    def test_hostile_names_are_inert_and_another_script_would_not_run(self, show, three):
        page = show(three[0], "#axis=2")
        assert page.ask("document.title") == HOSTILE
        assert any(text.startswith("test rows in order of </scr") for text in page.ask(TEXTS % "#bands text"))
        assert page.ask("typeof window.harmed") == "undefined"
        assert page.ask("[document.querySelectorAll('img').length, document.scripts.length]") == [0, 2]
        page.ask(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.harmed=1'}))"
        )
        assert page.ask("typeof window.harmed") == "undefined"
        (blocked,) = page.events("Log.entryAdded")
        assert "Content Security Policy" in blocked["entry"]["text"]
        page.start = len(page.browser.events)  # this trouble was wanted
        page.call("Page.reload")
        page.until("document.readyState === 'complete'")

    def test_marks_are_chosen_and_shaping_rows_are_marked(self, show, line):
        data = line[0]
        page, step = show(data), data.path.steps[data.path.chosen]
        names = ("inside", "learning", "shapes-lower", "shapes-upper", "calibration")
        found = dict(zip(names, (page.ask(COUNT % name) for name in names), strict=True))
        assert found.pop("inside") + page.ask(COUNT % "outside") == len(data.test)
        assert not any(found.values())
        for name in ("test", "learning", "shaping", "calibration"):
            page.ask(f"document.getElementById('show-{name}').click()")
        shaping = len(step.active_lower), len(step.active_upper)
        expected = [0, len(data.learning), *shaping, len(data.calibration_rows)]
        assert [page.ask(COUNT % name) for name in names] == expected

    def test_places_without_data_are_grey(self, show):
        X, y = line_data()
        X = np.where(np.abs(X) < 0.4, X + 3, X)  # a gap
        page = show(explore(X, y, estimator=quick(lengthscale=0.1)))
        assert page.ask("document.querySelectorAll('#bands .nodata').length") >= 2
        assert "little data nearby" in page.text("legend")

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
        page.until("document.getElementById('status').textContent.startsWith('Level 90')")
        assert "enalty" not in page.text("status")
        unfold(page)
        page.press("penalty", "Home")
        page.until("document.getElementById('status').textContent.includes(' Symmetry penalty 0, learning coverage')")
        assert page.ask("document.getElementById('status').getAttribute('aria-live')") == "polite"
        assert page.ask("document.getElementById('penalty').getAttribute('aria-valuetext')").startswith("0: Two indep")
        labelled = (
            "[...document.querySelectorAll('input,select,button')].filter((e) => !e.labels?.length && !e.textContent)"
        )
        assert page.ask(f"{labelled}.length") == 0


class TestWhy:
    @pytest.mark.parametrize("name", ["three", "line"])
    def test_a_click_on_a_test_row_explains_it(self, show, request, name):
        data, X, y = request.getfixturevalue(name)
        page = show(data, "#axis=1")
        model = fitted_alike(data, X, y, quick(lengthscale=2.0) if name == "three" else quick())
        why = model.explain(X[data.test.numbers])
        i = int(np.argmax(why.width))
        places = []
        for row in (i, i - 1):
            page.ask(f"location.hash = 'axis=1&row={data.test.numbers[row]}'")
            page.until(
                f"document.getElementById('explain-title').textContent.includes('{data.test.numbers[row]} this')"
            )
            places.append(page.ask(PICKED))
        for kind in ("mousePressed", "mouseReleased"):
            x, y = places[0]
            page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        assert page.text("explain-title") == f"Why is the interval of row {data.test.numbers[i]} this wide?"
        stored = payload(data)["why"]
        words = page.text("explain-words")
        assert words == stored["rows"][i]["words"]
        assert words.startswith(f"This interval is {why.times_typical[i]:.2g} times as wide as the typical one.")
        names = [stored["names"][k] for k, _ in stored["rows"][i]["factors"]]
        assert page.ask(TEXTS % "#factors th") == names
        assert page.ask(TEXTS % "#factors td")[1] == f"\u00d7{np.exp(why.band[i]):.3g}"
        assert names[0] == "shape of the band"
        assert page.ask("location.hash").endswith(f"&row={data.test.numbers[i]}")
        assert (
            page.text("explain-head") == f"{why.width[i]:.4g} wide, \u00d7{why.times_typical[i]:.3g} the typical width"
        )

    def test_what_is_read_by_keyboard_is_explained(self, show, three, line):
        data = three[0]
        page = show(data)
        order = np.argsort(data.test.prediction)
        page.press("inspect", "ArrowRight", 2)
        row = order[(len(order) - 1) // 2 + 2]
        assert page.text("explain-words") == payload(data)["why"]["rows"][row]["words"]
        assert page.text("read-x-name") == f"true (row {data.test.numbers[row]})"
        assert page.text("explain-where") == ""
        page.press("level", "ArrowLeft")
        words = "Explained at the settings given and 90\u00a0%: the controls are elsewhere."
        assert page.text("explain-where") == words
        data = line[0]  # a curve: the nearest row along it
        page = show(data)
        page.press("inspect", "Home")
        assert page.text("explain-words") == payload(data)["why"]["rows"][np.argmin(data.test.positions[0])]["words"]
        page = show(replace(data, why=None))  # infinite at the level asked for
        assert page.ask("document.getElementById('explain').hidden")
        page.press("inspect", "End")
        assert page.ask("document.querySelectorAll('.picked').length") == 0


@pytest.mark.slow_browser
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
            unfold(page)
            page.ask(f"location.hash = {address!r}")
            assert page.ask(SETTLED)
            assert page.ask("document.documentElement.scrollWidth") <= width
            assert page.ask(OVERLAPS) == []
            assert page.ask(
                "[...document.querySelectorAll('.readout dd')].every((e) => e.scrollWidth <= e.clientWidth)"
            )
            assert page.ask("document.getElementById('level').getBoundingClientRect().bottom") < height  # seen at once
