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

from report_pages import HOSTILE, fitted_alike, line_data, quick
from report_payload import in_use, unpacked
from sosbands import SoSBandRegressor
from sosbands.report import exploration, explore, render, write_page
from sosbands.report.payload import payload


class TestTheNumbers:
    def test_rows_are_used_once(self, line):
        data, X, y = line
        kinds = [data.learning.numbers, data.calibration_rows.numbers, data.test.numbers]
        assert [len(kind) for kind in kinds] == [60, 30, 30]
        np.testing.assert_array_equal(np.sort(np.concatenate(kinds)), np.arange(120))
        np.testing.assert_array_equal(data.test.y, y[data.test.numbers])
        np.testing.assert_array_equal(data.test.positions[0], X[data.test.numbers, 0])

    def test_rows_left_out_of_the_bands_do_not_shape_them(self):
        X, y = line_data()
        data = explore(X, y, estimator=quick(outlier_fraction=0.2))
        model = fitted_alike(data, X, y, quick(outlier_fraction=0.2))
        rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
        np.testing.assert_array_equal(data.path.steps[data.path.chosen].active_upper, rows[model.noise_.active_upper])
        wild = data.learning.numbers[np.argmax(np.abs(data.learning.y - data.learning.prediction))]
        shaping = np.concatenate([np.r_[s.active_lower, s.active_upper] for s in data.path.steps])
        assert set(shaping) <= set(data.learning.numbers)
        assert wild not in shaping

    def test_support_falls_beyond_the_data(self, line):
        data, X, _ = line
        support, grid = data.path.curve_support, data.axes[0].grid
        assert support[np.abs(grid) < 0.8].min() > 0.9
        assert max(support[0], support[-1]) < 0.9
        assert grid[0] == pytest.approx(X.min() - 0.1 * np.ptp(X))

    def test_the_generator_of_the_user_is_as_the_fit_left_it(self):
        X, y = line_data()
        shown, fitted = np.random.RandomState(5), np.random.RandomState(5)
        data = explore(X, y, estimator=quick(random_state=shown))
        rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
        quick(random_state=fitted).fit(X[rows], y[rows])
        assert shown.randint(2**31) == fitted.randint(2**31)


class TestTheRows:
    def test_large_tables_are_sampled_and_said_to_be(self, monkeypatch):
        monkeypatch.setattr(exploration, "MOST_FIT_ROWS", 60)
        monkeypatch.setattr(exploration, "MOST_TEST_ROWS", 30)
        monkeypatch.setattr(exploration, "MOST_DRAWN", 20)
        X, y = line_data(400)
        data = explore(X, y, estimator=quick())
        stored, step = in_use(data)
        assert stored["counts"] == [400, 40, 20, 30]
        assert data.notes[0] == "Of 400 rows given, a random sample of 90 was used."
        assert data.notes[1].startswith("Of 30 test rows, a random sample of 20 is drawn; every number is of all")
        assert (len(stored["test"]["y"]), len(step["test"]["reach"][0]), len(stored["why"]["rows"])) == (20, 20, 20)
        assert (len(step["inside_from"]), len(stored["groups"][0]["member"])) == (30, 30)

    def test_rows_of_several_features_stand_over_no_curve(self, three):
        stored, step = in_use(three[0])
        assert stored["learning"] is stored["calibration_rows"] is step["active"] is None
        assert (step["curve"]["reach"], [axis["x"] for axis in stored["axes"]]) == ([[], []], [[]] * 4)
        assert len(step["test"]["reach"][0]) == len(stored["test"]["y"]) == 30

    def test_data_frames_with_categories(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"dose": rng.uniform(size=60), "ward": rng.choice(["a", "b"], 60), "age": np.arange(60)})
        y = pd.Series(frame["dose"] + rng.normal(size=60), name="pain")
        encode = make_column_transformer((StandardScaler(), ["dose", "age"]), (OneHotEncoder(), ["ward"]))
        pipeline = make_pipeline(encode, LinearRegression())
        data = explore(
            frame, y, estimator=SoSBandRegressor(pipeline, preprocessor=encode, lengthscale=1.0, symmetry_penalty=0)
        )
        assert [axis.name for axis in data.axes] == ["prediction", "dose", "age"]
        assert (data.target_name, data.model_name) == ("pain", "linear regression")
        assert data.notes == ("1 of 3 features have no axis: not numbers, with gaps, or too many.",)
        np.testing.assert_array_equal(data.test.positions[0], data.test.prediction)
        np.testing.assert_array_equal(data.test.positions[2], data.test.numbers)  # ages

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
    def test_hostile_names_stay_text(self, line):
        data, hostile = line[0], HOSTILE + "&amp;{{data}}"
        axis = replace(data.axes[0], name=hostile)
        page = render(replace(data, title=hostile, target_name=hostile, axes=(axis,), sentence=hostile))
        honest, found = Elements(render(data)), Elements(page)
        assert [tag for tag, _ in found.tags] == [tag for tag, _ in honest.tags]
        assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
        stored = unpacked(found.texts[("script", "data")].strip())
        assert (stored["target"], stored["axes"][0]["name"], stored["sentence"]) == (hostile,) * 3
        assert found.texts[("h1", None)].strip() == hostile

    def test_nothing_is_loaded_and_the_file_is_small(self, line):
        page = render(line[0])
        assert "http://" not in page
        assert "https://" not in page
        assert "default-src 'none'" in page
        tags = Elements(page).tags
        loading = {"src", "href", "srcset", "action", "data", "poster"}
        assert [(tag, a) for tag, a in tags if loading & set(a) or tag in ("link", "iframe", "object", "img")] == []
        assert re.findall(r"@import|url\((?!#)|fetch\(|XMLHttp|eval\(|innerHTML", page) == []
        assert len(page.encode()) < 300_000

    def test_the_level_is_the_first_control_and_settings_are_folded(self, line):
        page = render(line[0]).partition("<body>")[2].partition("<script")[0]
        assert re.findall(r'<(?:input|select|button)[^>]* id="(\w+)"', page)[0] == "level"
        main, fold = page.split('<details class="card" id="learnt">')
        assert [f'id="{name}"' in fold for name in ("penalty", "learning", "scores", "certificate")] == [True] * 4
        assert main.index("How often inside<") < main.index("How wide<") < main.index("Where less often<")
        for name in ("penalty", "Penalty", "overage", "core<", "riterion", "Read", "Play"):
            assert name not in main.replace("coverage-", "").replace('"coverage"', "")

    def test_numbers_are_short_but_tell_neighbours_apart(self, line):
        data = line[0]
        far = replace(data, test=replace(data.test, y=data.test.y + 1e7, prediction=data.test.prediction + 1e7))
        for each in (data, far):
            np.testing.assert_allclose(payload(each)["test"]["y"], each.test.y, atol=1e-5, rtol=0)
        found, step = in_use(data)
        assert max(len(str(value)) for value in found["test"]["y"]) <= 9
        assert found["coverages"][found["coverage"]]["steps"][-1]["penalty"] is None
        (quantiles,) = step["q"]
        finite = [each for each in quantiles if each is not None]
        lost = sum(level / (1 - level) > 30 for level in found["levels"])  # those that need more than the 30 rows
        assert quantiles == sorted(finite) + [None] * lost
        assert lost == 3

    def test_the_level_asked_for_is_among_those_offered(self, line):
        stored = payload(replace(line[0], confidence_level=0.975))
        assert stored["levels"][stored["level"]] == 0.975
        assert len(stored["levels"]) == 51
        assert (stored["levels"][0], stored["levels"][-1]) == (0.5, 0.99)

    def test_the_file_appears_whole_or_not_at_all(self, tmp_path, monkeypatch):
        X, y = line_data(40)
        target = tmp_path / "page.html"
        assert write_page(X, y, target, estimator=quick(), title="Once") == target
        first = target.read_text(encoding="utf-8")
        assert "<title>Once</title>" in first
        monkeypatch.setattr("sosbands.report.page.render", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_page(X, y, target, estimator=quick())
        assert target.read_text(encoding="utf-8") == first
        assert [file.name for file in tmp_path.iterdir()] == ["page.html"]

    def test_a_bad_path_is_told_before_anything_is_fitted(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="expected a file name in a directory that exists"):
            write_page(None, None, tmp_path / "nowhere" / "page.html")
