"""Cards of models: their numbers are those of the model, their texts are escaped, they ask for nothing elsewhere."""

import hashlib
import re
import warnings
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RationalQuadratic
from sklearn.linear_model import LinearRegression

from report_browser import CHROMIUM, NAMES, Page
from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.baselines import SplitCP
from sosbands.exceptions import NotCalibratedError
from sosbands.report import write_card
from sosbands.report.card_sections import number, percent, start_of

FIXED = {"base_scale": "none", "noise_features": "inputs", "conformal_score": "added", "lengthscale": 1.0}
FIXED |= {"width_penalty": 5.0, "learning_coverage": 0.9, "symmetry_penalty": 1.0, "random_state": 0}
HOSTILE = '</style><script>alert("x")</script><img src=http://evil.example/a.png onerror=a()> {{title}} \' & %'
TAGS = "html head meta title style body header main section h1 h2 h3 p dl dt dd div table caption thead tbody tr th td"
TAGS += " ul li svg line circle"
ATTRIBUTES = "lang charset http-equiv content name class scope width height viewbox role preserveaspectratio aria-label"
ATTRIBUTES += " x1 x2 y1 y2 cx cy r"
PYTHON = r"\w+_\w+|\w+=|\w+\(|`|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w+|\bNone\b|\binf\b|\bnan\b"  # names and values


class Text(HTMLParser):
    """Visible text, cells of tables by caption, and every tag and attribute."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.cells, self._skip, self._in_cell = [], [], [], 0, False
        self.titles = [unescape(title) for title in re.findall(r"<h[23]>(.*?)</h[23]>", page)]
        self.feed(page)
        self.text = re.sub(r"\s+", " ", " ".join(self.words)).replace("\xa0", " ")

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._skip += tag in ("style", "title")
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag):
        self._in_cell &= tag not in ("td", "th")
        self._skip -= tag in ("style", "title")

    def handle_data(self, data):
        if self._skip:
            return
        self.words.append(data)
        if self._in_cell:
            self.cells[-1][-1] += data.replace("\xa0", " ")

    def row(self, first):
        """The row of a table that begins with this cell."""
        (found,) = [cells for cells in self.cells if cells and cells[0] == first]
        return found


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0] + (0.2 + 0.8 * (X[:, 1] > 0)) * rng.standard_exponential(n)


def fitted(groups=None, **settings):
    X, y = data()
    return SoSBandRegressor(LinearRegression(), **FIXED | settings).fit(X, y, groups=groups)


def card(tmp_path, model, **given):
    return Text(write_card(model, tmp_path / "card.html", **given).read_text(encoding="utf-8"))


def insides(model, X, y):
    """Intervals, and which targets are inside."""
    ends = model.predict_interval(X)
    return ends, (ends[:, 0] <= y) & (y <= ends[:, 1])


def wilson(hits, n):
    found = stats.binomtest(int(hits), int(n)).proportion_ci(method="wilson")
    return f"{percent(found.low)} to {percent(found.high)}"


def test_a_card_without_rows_has_what_the_model_knows(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.model")
    found = card(tmp_path, model, model_file=tmp_path / "m.model", target_name="price")
    text = found.text
    assert "90 % intervals. Learnt from 225 rows, calibrated on 75." in text
    assert "Prediction intervals for price" in text
    assert f"root mean square {number(model.residual_rms_)}" in text
    assert f"relative gap {model.noise_.certificate['gap']:.1e}" in text.replace("  ", " ")
    q = model.quantile()
    k = int(np.ceil(0.9 * 76))
    low, high = stats.beta.ppf([0.025, 0.975], k, 76 - k)
    moved = f"{abs(q):.4g} {'added to' if q >= 0 else 'taken off'} both ends"
    assert ["75", moved, "90 %", f"{percent(low)} to {percent(high)}"] in found.cells
    assert hashlib.sha256((tmp_path / "m.model").read_bytes()).hexdigest() in text
    assert found.row("lengthscale")[1:3] == ["1", "set"]
    titles = ["How often inside", "How wide", "What not to expect", "How it was learnt", "Columns (3)", "Settings"]
    assert found.titles == [*titles, "Certificate", "Calibration", "Versions and file"]
    assert re.search(r"Intervals are .* wide .* the prediction\.", text)
    assert text.count("at least 90% of new rows fall into") == 1  # the promise is made once
    assert "No rows with a known target were given" in text
    assert str(tmp_path) not in text  # the name of the file, not where it is


OWN_KERNEL = BandSettings(kernel=RationalQuadratic(length_scale=0.5))


@pytest.mark.parametrize(
    "asked",
    [
        {"lengthscale": "median", "bands": OWN_KERNEL},
        {"noise_features": "inputs+scale", "calibration": "asymmetric", "symmetry_penalty": np.inf},
        {"calibration_size": None},
    ],
)
def test_the_words_of_a_card_are_no_python(tmp_path, asked):
    X, y = data(120)
    model = SoSBandRegressor(**FIXED | {"base_scale": "forest", "confidence_level": 0.8} | asked).fit(X, y)
    rows = {} if asked == {"calibration_size": None} else {"X": X, "y": y, "groups": np.sign(X[:, 0])}
    found = card(tmp_path, model, **rows)
    if rows:
        titles = ["How often inside", "How wide", "Where less often", "What not to expect", "How it was learnt"]
        assert found.titles[:5] == titles
    words = re.sub("scikit-learn|sosbands [^ ]*", "", found.text)
    assert re.findall(PYTHON, words) == []
    assert len(re.findall(PYTHON, "conformalize(X, y) fit_rows cv=5 `fit RidgeCV inf matérn None")) == 7
    assert "predictions by a blend of " in words
    assert ("kernel given (rational quadratic)" in words) == ("bands" in asked)


def test_reasons_are_those_of_the_tuning(tmp_path):
    model = SoSBandRegressor(LinearRegression(), **FIXED | {"width_penalty": "auto", "max_seconds": 5}).fit(*data())
    (reason,) = [each for each in model.tuning_.reasons if each.startswith("width penalty")]
    found = card(tmp_path, model)
    assert found.row("width penalty")[1:3] == [number(model.noise_.settings.width_penalty), reason.partition(": ")[2]]
    assert model.tuning_.sentence in found.text
    assert f"{len(model.tuning_.evaluations)} candidates were compared" in found.text


def test_coverage_by_group_and_region_is_that_of_the_intervals(tmp_path):
    model, (X, y) = fitted(), data(400, seed=1)
    labels = np.where(X[:, 1] > 0, "wide", "narrow")
    found = card(tmp_path, model, X=X, y=y, groups=labels, groups_name="noise")
    (ends, inside), shifted = insides(model, X, y), np.where(X[:, 2] > 0.5, y + 10, y)
    width = ends[:, 1] - ends[:, 0]
    for name, rows in (("all rows", slice(None)), ("wide", labels == "wide"), ("narrow", labels == "narrow")):
        hits, n = inside[rows].sum(), len(inside[rows])
        cells = [name, str(n), percent(hits / n), "", wilson(hits, n), number(width[rows].mean())]
        assert found.row(name) == cells
    assert f"below their interval {percent(np.mean(y < ends[:, 0]))}" in found.text
    assert f"above their interval {percent(np.mean(y > ends[:, 1]))}" in found.text
    assert "By group: noise" in found.text
    assert "Groups were not calibrated apart." in found.text
    low, middle, high = np.quantile(width, [0.1, 0.5, 0.9], method="inverted_cdf")
    assert f"median width {number(middle)} eight of ten {number(low)} to {number(high)}" in found.text
    assert f"are {number(width.mean())} wide on average" in found.text
    k = int(np.ceil(0.9 * 76))
    low, high = stats.betabinom.ppf([0.025, 0.975], 400, k, 76 - k) / 400
    assert f"chance gives {percent(low)} to {percent(high)}" in found.text
    # regions along a column: six of about equally many rows, all of them once
    order = np.argsort(X[:, 0], kind="stable")
    edges = [int(np.floor(j * 400 / 6 + 0.5)) for j in range(7)]
    for a, b in zip(edges, edges[1:], strict=False):
        rows = order[a:b]
        name = f"{number(X[rows, 0].min())} to {number(X[rows, 0].max())}"
        assert found.row(name)[1:3] == [str(b - a), percent(inside[rows].mean())]
    assert "Along feature 0" in found.text
    pictures = [attrs for tag, attrs in found.tags if tag == "svg"]
    assert pictures[0]["aria-label"].startswith(percent(inside.mean()))
    short = card(tmp_path, model, X=X, y=shifted).text  # the last of six groups along another column
    rows = np.argsort(X[:, 2], kind="stable")[-67:]
    low, high = (number(each) for each in X[rows[[0, -1]], 2])
    share = insides(model, X, shifted)[1][rows].mean()
    assert f"feature 2 {low} to {high}: {percent(share)} of 67 rows inside." in short
    assert re.search(r"[1-9]\d* of \d+ groups and ranges hold less than 90 %", short)


def test_rows_of_another_kind_are_doubted(tmp_path):
    model, (X, y) = fitted(), data(400, seed=1)
    found = card(tmp_path, model, X=X + [0, 0, 50], y=y + 3)
    assert "is not what chance gives: are these rows of another kind?" in found.text
    assert "far from the learning data 400" in found.text
    assert "400 of the 400 rows with a known target lie far from the learning data." in found.text
    assert "are these rows of another kind" not in card(tmp_path, model, X=X, y=y).text


def test_texts_are_escaped_and_nothing_is_loaded_from_elsewhere(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame({HOSTILE: X[:, 0], "<b>": np.where(X[:, 1] > 0, "<i>a", "&amp;"), "n": X[:, 2]})
    model = SoSBandRegressor(**FIXED).fit(frame, y)
    labels = np.where(X[:, 1] > 0, HOSTILE, "<td>")
    found = card(tmp_path, model, X=frame, y=y, groups=labels, groups_name=HOSTILE, target_name=HOSTILE, title=HOSTILE)
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert {tag for tag, _ in found.tags} == set(TAGS.split())
    assert {name for _, attrs in found.tags for name in attrs} == set(ATTRIBUTES.split())
    assert [HOSTILE, "number"] in found.cells  # a column, as it is
    assert found.text.count(re.sub(r"\s+", " ", HOSTILE)) >= 5
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert not re.search(r"url\(|@import|https?:", style)
    assert "display: none" not in style  # what is on the screen is printed
    assert "@media print" in style
    (policy,) = [attrs["content"] for tag, attrs in found.tags if attrs.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy


def test_groups_that_are_calibrated_apart(tmp_path):
    groups = np.where(data()[0][:, 0] > 0, "a", "b")
    model, (X, y) = fitted(groups), data(200, seed=1)
    labels = np.where(X[:, 0] > 0, "a", "b")
    found = card(tmp_path, model, X=X, y=y, groups=labels)
    assert "Each group was calibrated apart." in found.text
    for label in "ab":
        n = int((model.calibration_.groups == label).sum())
        rows = [cells for cells in found.cells if cells[:2] == [label, str(n)] and len(cells) == 5]
        assert f"{abs(model.quantile(group=label)):.4g}" in rows[0][2]
    with pytest.raises(ValueError, match="groups"):
        card(tmp_path, model, X=X, y=y)


def test_ends_of_asymmetric_calibration_have_quantiles_of_their_own(tmp_path):
    model, (X, y) = fitted(calibration="asymmetric"), data(200, seed=1)
    found = card(tmp_path, model, X=X, y=y)
    below, above = model.quantile()
    words = [cells[1] for cells in found.cells if len(cells) == 4 and cells[2] == "95 %"]
    assert [f"{abs(q):.4g}" in each for q, each in zip((below, above), words, strict=True)] == [True, True]
    ends = model.predict_interval(X)
    assert f"{percent(np.mean(y >= ends[:, 0]))} of the rows are not below (promised 95 %)" in found.text
    upper = card(tmp_path, model, X=X, y=y, side="upper")
    ends = model.predict_interval(X, lower_share=0.0)
    assert upper.row("all rows")[5] == number((ends[:, 1] - model.predict(X)).mean())
    assert "at most 10 % of new rows lie above theirs" in upper.text
    assert "mean reach" in upper.text


def test_cross_calibration_weights_and_none(tmp_path):
    X, y = data(200, seed=1)
    found = card(tmp_path, fitted(calibration_size="cross", cv=2), X=X, y=y)
    assert "by 2 copies" in found.text
    assert "chance gives" not in found.text
    plain = fitted(calibration_size=None)
    assert "Not calibrated: nothing is promised" in card(tmp_path, plain).text
    with pytest.raises(NotCalibratedError):
        card(tmp_path, plain, X=X, y=y)
    weighted = plain.conformalize(X, y, likelihood_ratio=np.exp(X[:, 0]))
    found = card(tmp_path, weighted, X=X, y=y, likelihood_ratio=np.ones(200))
    assert "if the likelihood ratios are right" in found.text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learnt = fitted(calibration_size=None).conformalize(*data())
    assert "NO coverage is promised" in card(tmp_path, learnt).text


def test_too_few_calibration_rows_and_another_level(tmp_path):
    model, (X, y) = fitted(), data(50, seed=1)
    found = card(tmp_path, model, X=X, y=y, confidence_level=0.999)
    assert "infinite: needs 999 rows" in found.text
    assert "50 intervals of 50 are infinite" in found.text
    assert "The settings were chosen for intervals of 90 %." in found.text
    assert model.confidence_level == 0.9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": np.zeros((3, 3))}, "y=None: expected both X and y, or neither"),
        ({"y": np.zeros(3)}, "X=None: expected both X and y, or neither"),
        ({"X": np.zeros((3, 3)), "y": np.zeros(4)}, "y"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(3)}, "2 features"),
        ({"side": "left"}, "side='left': expected one of"),
        ({"side": "upper"}, "side='upper': expected 'both' for a model with calibration='symmetric'"),
        ({"confidence_level": 2}, "2"),
        ({"X": np.zeros((3, 3)), "y": np.zeros(3), "groups": ["a"]}, "groups"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        write_card(fitted(), tmp_path / "card.html", **given)
    assert list(tmp_path.iterdir()) == []


def test_other_models_and_places_are_refused(tmp_path):
    split = SplitCP(LinearRegression(), random_state=0).fit(*data())
    with pytest.raises(ValueError, match="model='SplitCP': expected a SoSBandRegressor"):
        write_card(split, tmp_path / "card.html")
    with pytest.raises(FileNotFoundError):
        write_card(fitted(), tmp_path / "no" / "card.html")
    model = fitted()
    model.save(tmp_path / "m")
    with pytest.raises(FileExistsError):
        write_card(model, tmp_path / "m", model_file=tmp_path / "m")


@pytest.mark.parametrize(("lows", "start"), [([0.85, 0.72], 0.7), ([0.7], 0.6), ([0.03], 0.0), ([], 0.4)])
def test_pictures_begin_below_the_lowest_end(lows, start):
    assert start_of(lows) == pytest.approx(start)


@pytest.mark.skipif(CHROMIUM is None, reason=f"none of {', '.join(NAMES)} is installed")
def test_a_card_fits_on_a_phone(tmp_path, browser):
    X, y = data(80, seed=1)
    groups = np.where(X[:, 1] > 0, "a rather long name of a group", "b")
    file = write_card(fitted(), tmp_path / "card.html", X=X, y=y, groups=groups, target_name="price " * 9)
    page = Page(browser, file.as_uri(), width=360, height=800, ready="document.readyState === 'complete'")
    assert page.ask("document.querySelectorAll('table').length") >= 5
    assert page.ask("document.documentElement.scrollWidth") <= 360
    cut = "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth)"
    assert page.ask(f"{cut}.map((each) => each.textContent)") == []
    page.close()
