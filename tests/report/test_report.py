"""What the page shows equals what the estimator gives; what is written is one safe, self-contained file."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from report_payload import opened, unpacked
from sosbands import SoSBandRegressor
from sosbands.conformal import conformal_quantile
from sosbands.regressors import PAPER_SETTINGS
from sosbands.report import exploration, explore, render, write_page
from sosbands.report.payload import payload
from sosbands.tuning import Rules
from spelled import spelled

HOSTILE = '</script><script>window.harmed = 1</script><img src=x onerror="window.harmed = 2">&amp;{{data}}'


def line_data(n=100, seed=0, noise="skewed"):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    scale = 1.1 + X[:, 0] if noise == "skewed" else 1.0
    return X, np.sin(2 * X[:, 0]) + scale * rng.exponential(size=n)


def quick(**settings):
    """Nothing to tune and a point model that is fitted at once."""
    fixed = {**PAPER_SETTINGS, "lengthscale": 0.6, "symmetry_penalty": 30.0}
    return SoSBandRegressor(LinearRegression(), **spelled(**{**fixed, **settings}))


def fitted_alike(data, X, y, estimator):
    """The estimator, fitted to the rows that the exploration was fitted to."""
    rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
    return estimator.set_params(random_state=0).fit(X[rows], y[rows]), rows


@pytest.fixture(scope="module")
def explored():
    X, y = line_data()
    return explore(X, y, estimator=quick()), X, y


def steps_of(data):
    return {step.symmetry_penalty: step for step in data.path.steps}


class TestTheNumbers:
    def test_the_step_in_use_is_the_model_itself(self, explored):
        data, X, y = explored
        model, rows = fitted_alike(data, X, y, quick())
        path = data.path
        step = path.steps[path.chosen]
        assert step.symmetry_penalty == 30
        np.testing.assert_allclose(step.lower_scores, model.calibration_.lower_scores, rtol=1e-12)
        np.testing.assert_allclose(step.upper_scores, model.calibration_.upper_scores, rtol=1e-12)
        ends = model.predict_interval(X[data.test.numbers], 0.8)
        q = conformal_quantile(np.maximum(step.lower_scores, step.upper_scores), 0.8)
        np.testing.assert_allclose(data.test.prediction - step.test[0] - q, ends[:, 0], rtol=1e-10)
        np.testing.assert_allclose(data.test.prediction + step.test[1] + q, ends[:, 1], rtol=1e-10)
        np.testing.assert_array_equal(step.active_lower, rows[model.noise_.active_lower])
        assert step.certificate == model.noise_.certificate | {"seconds": step.certificate["seconds"]}

    @pytest.mark.parametrize("penalty", [0.0, 5.0, 200.0, np.inf])
    def test_other_steps_are_the_model_with_that_penalty(self, explored, penalty):
        data, X, y = explored
        model, _ = fitted_alike(data, X, y, quick(symmetry_penalty=penalty, tol=1e-6))
        step = steps_of(data)[penalty]
        rms = model.residual_rms_
        np.testing.assert_allclose(step.lower_scores, model.calibration_.lower_scores, atol=0.02 * rms)
        np.testing.assert_allclose(step.upper_scores, model.calibration_.upper_scores, atol=0.02 * rms)
        grid = data.axes[0].grid[:, None]
        below, above = step.curves[0]
        ends = model.predict(grid) - below, model.predict(grid) + above
        band = model.told(grid).band
        np.testing.assert_allclose(ends, [band.lower, band.upper], atol=0.02 * rms)

    def test_the_slide_goes_from_independent_to_shared(self, explored):
        steps = explored[0].path.steps
        assert [step.symmetry_penalty for step in steps] == [0, 2, 5, 10, 20, 30, 50, 100, 200, 500, 1000, np.inf]
        differences = [step.difference for step in steps]
        assert differences[-1] == 0
        assert differences[0] > 0.3
        assert all(b <= a * 1.01 for a, b in zip(differences[:-1], differences[1:], strict=True))

    def test_every_step_is_certified(self, explored):
        for step in explored[0].path.steps:
            assert step.certificate["status"] == "converged"
            assert step.certificate["gap"] <= 1e-4
            assert step.certificate["dual_value"] <= step.certificate["primal_value"]

    def test_rows_are_used_once(self, explored):
        data = explored[0]
        kinds = [data.learning.numbers, data.calibration_rows.numbers, data.test.numbers]
        assert [len(kind) for kind in kinds] == [37, 38, 25]
        np.testing.assert_array_equal(np.sort(np.concatenate(kinds)), np.arange(100))
        np.testing.assert_array_equal(data.test.y, explored[2][data.test.numbers])
        np.testing.assert_array_equal(data.test.positions[0], explored[1][data.test.numbers, 0])

    def test_rows_left_out_of_the_bands_do_not_shape_them(self):
        X, y = line_data()
        data = explore(X, y, estimator=quick(outlier_fraction=0.2))
        model, rows = fitted_alike(data, X, y, quick(outlier_fraction=0.2))
        step = steps_of(data)[30.0]
        np.testing.assert_array_equal(step.active_upper, rows[model.noise_.active_upper])
        wild = data.learning.numbers[np.argmax(np.abs(data.learning.y - data.learning.prediction))]
        shaping = np.concatenate([np.r_[s.active_lower, s.active_upper] for s in data.path.steps])
        assert set(shaping) <= set(data.learning.numbers)
        assert wild not in shaping

    def test_support_falls_beyond_the_data(self, explored):
        data = explored[0]
        support = data.path.curve_support[0]
        grid = data.axes[0].grid
        inside = np.abs(grid) < 0.8
        assert support[inside].min() > 0.9
        assert support[0] < 0.9
        assert support[-1] < 0.9
        assert grid[0] == pytest.approx(explored[1].min() - 0.1 * np.ptp(explored[1]))


class TestTheDecision:
    def test_the_criterion_is_that_of_the_tuning(self):
        X, y = line_data(80, seed=3)
        settings = {"symmetry_penalty": "auto", "cv": 3}
        data = explore(X, y, estimator=quick(**settings))
        model, _ = fitted_alike(data, X, y, quick(**settings))
        assert data.sentence == model.tuning_.sentence
        assert data.is_tuned
        assert data.path.steps[data.path.chosen].symmetry_penalty == model.noise_.settings.symmetry_penalty
        steps = steps_of(data)
        known = {row["symmetry_penalty"]: row["criterion"] for row in model.tuning_.evaluations}
        assert known
        for penalty, value in known.items():
            assert steps[penalty].criterion == pytest.approx(value, rel=3e-3)  # coarse solves, other warm starts

    def test_the_criterion_of_rules_is_shown(self):
        X, y = line_data(80, seed=3)
        rules = Rules(criterion="dcor", symmetry_test=None)
        data = explore(X, y, estimator=SoSBandRegressor(LinearRegression(), lengthscale=0.6, cv=3, rules=rules))
        assert data.criterion == "dcor"
        assert all(0 <= step.criterion <= 1 for step in data.path.steps)

    def test_the_criterion_of_what_was_given_is_the_same_each_time(self, explored):
        data, X, y = explored
        again = explore(X, y, estimator=quick())
        values = [step.criterion for step in data.path.steps]
        assert values == [step.criterion for step in again.path.steps]
        assert max(values) - min(values) > 0.01

    def test_the_generator_of_the_user_is_as_the_fit_left_it(self):
        X, y = line_data()
        shown, fitted = np.random.RandomState(5), np.random.RandomState(5)
        data = explore(X, y, estimator=quick(random_state=shown))
        rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
        quick(random_state=fitted).fit(X[rows], y[rows])
        assert shown.randint(2**31) == fitted.randint(2**31)

    def test_bands_of_constant_width(self):
        X, y = line_data(60, seed=1, noise="constant")
        data = explore(X, y, estimator=SoSBandRegressor(LinearRegression(), cv=3, **PAPER_SETTINGS))
        assert data.sentence.endswith("bands of constant width.")
        assert data.settings.startswith("constant width, ")
        assert np.ptp(data.path.steps[data.path.chosen].curves[0][0]) < 1e-9

    def test_what_was_given_is_not_called_a_choice(self, explored):
        assert not explored[0].is_tuned
        assert explored[0].sentence == "Lengthscale and symmetry penalty were given, not chosen from the data."

    def test_sides_of_their_own_have_no_symmetric_limit(self):
        X, y = line_data()
        data = explore(X, y, estimator=quick(lengthscale={"lower": 0.5, "upper": 0.8}))
        assert data.path.steps[-1].symmetry_penalty == 1000
        assert data.settings.startswith("one lengthscale below, another above, ")


class TestTheRows:
    def test_large_tables_are_sampled_and_said_to_be(self, monkeypatch):
        monkeypatch.setattr(exploration, "MOST_FIT_ROWS", 60)
        monkeypatch.setattr(exploration, "MOST_TEST_ROWS", 30)
        monkeypatch.setattr(exploration, "MOST_DRAWN", 20)
        X, y = line_data(400)
        data = explore(X, y, estimator=quick())
        assert (data.n_given, data.n_learning, data.n_calibration, len(data.test)) == (400, 30, 30, 30)
        assert data.notes[0] == "Of 400 rows given, a random sample of 90 was used."
        drawn = len(data.learning) + 20 + 20
        assert data.notes[1].startswith(f"Of 90 rows, a random sample of {drawn} is drawn")
        assert data.n_test_drawn == 20
        shaping = np.concatenate([np.r_[s.active_lower, s.active_upper] for s in data.path.steps])
        assert set(shaping) <= set(data.learning.numbers)  # these are always drawn
        assert len(data.calibration_rows) == 20
        assert len(data.path.steps[0].lower_scores) == 30

    def test_data_frames_with_categories(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"dose": rng.uniform(size=60), "ward": rng.choice(["a", "b"], 60), "age": np.arange(60)})
        y = pd.Series(frame["dose"] + rng.normal(size=60), name="pain")
        encode = make_column_transformer((StandardScaler(), ["dose", "age"]), (OneHotEncoder(), ["ward"]))
        model = SoSBandRegressor(
            make_pipeline(encode, LinearRegression()), preprocessor=encode, lengthscale=1.0, symmetry_penalty=0
        )
        data = explore(frame, y, estimator=model)
        assert [axis.name for axis in data.axes] == ["prediction", "dose", "age"]
        assert data.target_name == "pain"
        assert data.notes == ("1 of 3 features have no axis: not numbers, with gaps, or too many.",)
        slope = np.polyfit(data.axes[1].grid, data.axes[1].prediction, 1)[0]
        assert np.ptp(data.axes[1].prediction) == pytest.approx(abs(slope) * np.ptp(data.axes[1].grid))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"X": np.zeros((5, 1)), "y": np.zeros(5)}, "X has 5 rows: expected at least 8"),
            ({"feature_names": ["a", "b"]}, "feature_names=.*expected 1 names"),
            ({"feature_names": "a"}, "feature_names='a': expected 1 names"),
            ({"estimator": quick(calibration_size=None)}, "calibration_size=None"),
            ({"estimator": quick(nested_coverages=(0.5, 0.9))}, "nested_coverages=.*, expected None"),
            ({"estimator": quick(symmetry_penalty=(1, 2), symmetry_kind="operator")}, r"symmetry_penalty=\(1, 2\)"),
            ({"confidence_level": 1.5}, "confidence_level=1.5"),
            ({"y": [np.nan] * 20}, "y holds NaN"),
        ],
    )
    def test_bad_input_is_named(self, change, message):
        X, y = line_data(20)
        arguments = {"X": X, "y": y, "estimator": quick(), **change}
        with pytest.raises(ValueError, match=message):
            explore(arguments.pop("X"), arguments.pop("y"), **arguments)


class Elements(HTMLParser):
    """Start tags, and the text of scripts and of the title."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.here = [], {}, None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.here = (tag, dict(attrs).get("id"))

    def handle_data(self, data):
        self.texts[self.here] = self.texts.get(self.here, "") + data


class TestTheFile:
    def test_hostile_names_stay_text(self, explored):
        data = explored[0]
        axis = replace(data.axes[0], name=HOSTILE)
        page = render(replace(data, title=HOSTILE, target_name=HOSTILE, axes=(axis,), sentence=HOSTILE))
        honest, found = Elements(render(data)), Elements(page)
        assert [tag for tag, _ in found.tags] == [tag for tag, _ in honest.tags]
        assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
        stored = unpacked(found.texts[("script", "data")].strip())
        assert (stored["target"], stored["axes"][0]["name"], stored["sentence"]) == (HOSTILE,) * 3
        assert found.texts[("h1", None)].strip() == HOSTILE

    def test_nothing_is_loaded(self, explored):
        page = render(explored[0])
        assert "http://" not in page
        assert "https://" not in page
        assert "default-src 'none'" in page
        tags = Elements(page).tags
        loading = {"src", "href", "srcset", "action", "data", "poster"}
        assert [(tag, a) for tag, a in tags if loading & set(a) or tag in ("link", "iframe", "object", "img")] == []
        assert re.findall(r"@import|url\((?!#)|fetch\(|XMLHttp|eval\(|innerHTML", page) == []

    def test_size(self, explored):
        assert len(render(explored[0]).encode()) < 300_000

    def test_numbers_are_short_but_tell_neighbours_apart(self, explored):
        data = explored[0]
        far = replace(data, test=replace(data.test, y=data.test.y + 1e7, prediction=data.test.prediction + 1e7))
        for each in (data, far):
            stored = payload(each)["test"]
            np.testing.assert_allclose(stored["y"], each.test.y, atol=1e-5, rtol=0)
            assert max(len(str(value)) for value in payload(data)["test"]["y"]) <= 9
        found = payload(data)
        step = opened(found, found["coverages"][found["coverage"]]["steps"][-1])
        assert step["penalty"] is None
        (quantiles,) = step["q"]
        finite = quantiles[:48]
        assert (finite, quantiles[48:]) == (sorted(finite), [None, None])  # 98 % needs more rows

    def test_the_level_asked_for_is_among_those_offered(self, explored):
        stored = payload(replace(explored[0], confidence_level=0.975))
        assert stored["levels"][stored["level"]] == 0.975
        assert len(stored["levels"]) == 51
        assert (stored["levels"][0], stored["levels"][-1]) == (0.5, 0.99)

    def test_the_file_appears_whole_or_not_at_all(self, tmp_path, monkeypatch):
        X, y = line_data(40)
        target = tmp_path / "page.html"
        assert write_page(X, y, target, estimator=quick(), title="Once") == target
        first = target.read_text(encoding="utf-8")
        assert "<title>Once</title>" in first

        def fails(_):
            raise RuntimeError("no page")

        monkeypatch.setattr("sosbands.report.page.render", fails)
        with pytest.raises(RuntimeError, match="no page"):
            write_page(X, y, target, estimator=quick())
        assert target.read_text(encoding="utf-8") == first
        assert [file.name for file in tmp_path.iterdir()] == ["page.html"]

    def test_a_bad_path_is_told_before_anything_is_fitted(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="expected a file name in a directory that exists"):
            write_page(None, None, tmp_path / "nowhere" / "page.html")
