"""Bad command lines and bad files: a message that names the culprit, the right exit code, nothing written."""

import datetime
import sys

import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV

import sosbands as library
from cli_runs import FAST, mixed_table, number_table, refused, sosbands
from sosbands.baselines import SplitCP
from sosbands.cli import app as program

GOOD = "a,b,y\n1,2,3\n4,5,6\n7,8,10\n2,2,4\n"
MODELS = """
import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression

number = 1
classifier = DummyClassifier()
of_c = LinearRegression().fit(pd.DataFrame({"c": [1.0, 2.0]}), [1.0, 2.0])
of_three = LinearRegression().fit(np.eye(3), np.ones(3))


def nameless():
    return TransformedTargetRegressor(LinearRegression(), func=lambda y: y, inverse_func=lambda y: y)


def fail():
    raise KeyError("no")


class Failing(DummyRegressor):
    def predict(self, X):
        raise ValueError("not today")


failing = Failing().fit(np.eye(2), np.ones(2))
"""


class Opaque:
    """A type that a model file may not hold unasked."""


DEFAULTS = {  # what a line of the tables below need not say; what it says counts
    "fit": ["--target", "y", "-o", "out.model", *FAST],
    "predict": ["-o", "out.csv"],
    "compare": ["--target", "y", "--methods", "split", "--repetitions", "1"],
}


def words_of(line):
    """The words of a command; of `predict` without a model that of numbers."""
    command, *words = line.split()
    model = ["numbers.model"] if command == "predict" and not (words and words[0].endswith(".model")) else []
    return [command, *DEFAULTS.get(command, []), *model, *words]


# Texts that options refuse, and what is said of them: exit code 2.
NO_LEVEL = "is not between 0 and 1"
BAD_OPTIONS = {
    "fit good.csv --confidence-level": (["90"], NO_LEVEL),
    "predict good.csv --confidence-level": (["0", "high", "nan"], NO_LEVEL),
    "predict good.csv --digits": (["0"], "is not a whole number from 1 to 17"),
    "fit good.csv --model": (["tree"], "is not one of auto, gp, forest"),
    "fit good.csv --side": (["left"], "is not one of both, lower, upper"),
    "fit good.csv --outlier-fraction": (["1"], "is not a number from 0 on, below 1"),
    "fit good.csv --rank": (["0", "cross"], "is not auto, exact, a whole number or a fraction"),
    "fit good.csv --calibration": (["both"], "is not one of symmetric, asymmetric"),
    "fit good.csv --score": (["times"], "is not one of auto, added, scaled"),
    "fit good.csv --base-scale": (["tree"], "is not one of auto, none, model, forest"),
    "fit good.csv --noise-features": (["inputs+y"], "is not auto, or some of inputs (or lengthscales), prediction and"),
    "fit good.csv --width-penalty": (["0"], "is not auto or a number > 0"),
    "fit good.csv --learning-coverage": (["90"], "is not auto, or a number above 0 and up to 1"),
    "fit good.csv --max-seconds": (["-1"], "is not a number of seconds >= 0, or inf"),
    "fit good.csv --calibration-size": (["0", "1.5", "half", "crossed"], "is neither a fraction"),
    "fit good.csv --target-range": (["3", "a,b", "2,1"], "is not auto, nor two numbers such as 0,100"),
    "fit good.csv --target-transform": (["cube"], "is not one of auto, none, log, sqrt"),
    "fit good.csv --symmetry-penalty": (["-1", "much"], "is not auto, a number >= 0"),
    "fit good.csv --lengthscale": (["0", "nan"], "is not auto, median, a number > 0"),
    "fit good.csv --seed": (["-1", "1.5"], "is not a whole number from 0 to"),
    "fit good.csv --jobs": (["0"], "is no number of processes"),
    "compare good.csv --repetitions": (["0"], "is not a whole number from 1"),
    "recalibrate numbers.model good.csv -o o.model --window": (["0"], "is not a whole number from 1"),
    "recalibrate numbers.model good.csv -o o.model --decay": (["1", "often"], NO_LEVEL),
    "monitor numbers.model good.csv -o o.png --alarm-level": (["2"], NO_LEVEL),
    "export numbers.model -o o.npz --levels": (["90"], NO_LEVEL),
}
BAD_LINES = [
    (f"{line} {text}", f"{text!r} {problem}") for line, (texts, problem) in BAD_OPTIONS.items() for text in texts
]
BAD_LINES += [
    ("lean", "No such command 'lean'"),
    ("fit", "Missing argument 'DATA'"),
    ("explore good.csv -o page.html", "Missing option '--target'"),
    ("explore good.csv --target y", "Missing option '-o'"),
    ("fit good.csv more.csv", "unexpected extra argument"),
    ("fit good.csv --level 0.9", "No such option"),
    ("predict good.csv --confidence-level 0.8,90", "'90' is not between 0 and 1"),
    ("predict good.csv --confidence-level 0.8,0.8", "'0.8,0.8' names a level twice"),
    ("compare good.csv --methods sos,magic", "'magic' is not one of sos"),
    ("compare good.csv --methods sos,sos", "names a method twice"),
    ("predict", "Missing argument 'DATA'"),
]

# Files and columns that are not as they should be: exit code 1.
STRANGE = "test_cli_errors.Opaque"
BAD_FILES = [
    ("fit absent.csv", "absent.csv: no such file"),
    ("fit good.xlsx", "good.xlsx: expected a name that ends in .csv or .parquet"),
    ("fit folder.csv", "folder.csv is a folder"),
    ("fit empty.csv", "empty.csv is empty"),
    ("fit header.csv", "header.csv has no rows"),
    ("fit blank.csv", "its first line is empty, expected the names"),
    ("fit numbers-only.csv", "its first line holds numbers only"),
    ("fit semicolons.csv", "its first line is 'a;b;y', expected names with commas"),
    ("fit twice.csv", "several columns named 'a'"),
    ("fit nameless.csv", "column 1 has no name"),
    ("fit few.csv", "few.csv: row 2 after the header has 2 cells, expected 3, one per column: '4,5'"),
    ("fit many.csv", "many.csv: row 1 after the header has 4 cells, expected 3"),
    ("fit quotes.csv", "row 1 after the header has 1 cells"),
    ("fit latin.csv", "invalid UTF8 data"),
    ("fit long-header.csv", "its first line is no row of names"),
    ("fit latin-header.csv", "its first line is no row of names in UTF-8"),
    ("fit bad.parquet", "bad.parquet is not a Parquet file, or damaged"),
    ("fit cut.parquet", "cut.parquet is not a Parquet file, or damaged"),
    ("fit lists.parquet", "column 'b': holds list<"),
    ("fit times.parquet", "column 'b': holds time64[us], expected numbers, texts"),
    ("fit good.csv --target Y", "good.csv has no column 'Y': it has 'a', 'b', 'y'"),
    ("fit mixed.csv --target wrad", "no column 'wrad': did you mean 'ward'?"),
    ("fit mixed.csv --target ward", "column 'ward', row 1: 'south' is not a number (the target must be numbers)"),
    (
        "fit moments.csv",
        "column 'y', row 1: '2024-01-01' is not a number (the target must be numbers; count dates in a",
    ),
    ("fit moments.parquet", "column 'y': holds date32[day], expected numbers (the target must be numbers; count dates"),
    ("fit spans.parquet", "the target must be numbers; count dates in a unit from some date"),
    ("fit gap.csv", "gap.csv: column 'y', row 3: the target is missing"),
    ("fit infinite-target.csv", "column 'y', row 2: inf is not a finite number"),
    ("fit typo.csv", "typo.csv: column 'a', row 3: '7,5' is not a number, as 75% of the column"),
    ("fit infinite.csv", "column 'b', row 1: -inf is not a finite number"),
    ("fit huge.csv", "column 'b', row 1: inf is not a finite number"),
    ("fit far.csv", "error: far.csv: column 'b', row 1: 1e+308 is too large: expected at most 1e+150"),
    ("fit far-target.csv", "error: far-target.csv: column 'y', row 1: 1e+308 is too large: expected at most 1e+150"),
    ("fit dates.csv", "column 'b', row 2: '2024-02-30' is not an ISO date such as 2024-12-31"),
    ("fit gaps.csv", "column 'b': every cell is missing; leave the column out with --drop"),
    ("fit good.csv --drop c", "good.csv has no column 'c'"),
    ("fit good.csv --drop y", "column 'y' is the target"),
    ("fit good.csv --category y", "column 'y' is the target"),
    ("fit good.csv --drop a --drop b", "no column left to learn from"),
    ("fit good.csv --model spline", "spline needs one column of numbers, there are 2"),
    ("fit one.csv", "1 row"),
    ("fit good.csv --calibration-size 4", "calibration_size=4 leaves none"),
    ("fit good.csv -o no/out.model", "output no/out.model: there is no folder no"),
    ("fit good.csv -o folder.csv", "output folder.csv is a folder"),
    ("fit good.csv -o good.csv", "good.csv is also an input"),
    ("fit good.csv --model m.joblib", "--model m.joblib: no such file"),
    ("fit good.csv --model absent:make", "--model absent:make: there is no module absent in "),
    ("fit good.csv --model user_models:make", "user_models.py has no attribute 'make'"),
    ("fit good.csv --model user_broken:x", "importing user_broken failed (ZeroDivisionError: "),
    ("fit good.csv --model user_models:fail", "calling it failed (KeyError: 'no')"),
    ("fit good.csv --model user_models:number", "user_models:number is a int without predict: expected a regressor"),
    ("fit good.csv --model user_models:classifier", "is the classifier DummyClassifier"),
    ("fit good.csv --model good.pkl", "--model good.pkl cannot be read ("),
    (
        "fit good.csv --model user_models:of_c",
        "was fitted to columns that are not there: 'c' (there are 'a', 'b')",
    ),
    ("fit good.csv --model user_models:of_three", "was fitted to 3 columns without names, there are 2: 'a', 'b'"),
    (
        "fit good.csv --model user_models:nameless",
        "--model user_models:nameless: the model holds ['user_models.<lambda>'], which cannot be saved",
    ),
    (
        "fit good.csv --model user_models:failing",
        "--model user_models:failing fails to predict rows of good.csv (ValueError: not today)",
    ),
    ("fit good.csv --refit", "--refit with --model linear: expected a regressor of your"),
    ("fit good.csv --groups y", "--groups y: expected another column than the target"),
    ("fit good.csv --groups ward", "good.csv has no column 'ward'"),
    ("fit good.csv --groups-as-feature", "--groups-as-feature without --groups"),
    ("predict numbers.model numbers.model", "file numbers.model: expected a name that ends in .csv"),
    ("predict absent.model good.csv", "model absent.model: no such file"),
    ("predict table.model good.csv", "not a model file of sosbands, or cut short"),
    ("predict cut.model good.csv", "not a model file of sosbands, or cut short"),
    ("predict good.csv --groups a", "numbers.model was calibrated without groups"),
    ("predict good.csv --id house", "good.csv has no column 'house'"),
    ("predict strange.model good.csv", f"strange.model holds {STRANGE}, and"),
    ("predict strange.model good.csv --trust builtins.eval", f"--trust builtins.eval --trust {STRANGE}\n"),
    ("predict forged.model good.csv", "damaged or forged: it holds a tree that splits a column that does not exist"),
    ("predict mixed.csv", "mixed.csv lacks the columns 'a', 'b' that the model was learnt from"),
    ("predict good.csv -o out.txt", "output out.txt: expected a name that ends in"),
    ("predict good.csv -o good.csv", "good.csv is also an input"),
    ("predict lower.csv --keep-columns", "lower.csv has columns 'lower' already: rename them, or do not keep them"),
    ("predict typo.csv", "typo.csv: column 'a', row 3: '7,5' is not a number\n"),
    ("predict words.parquet", "column 'b', row 1: 'two' is not a number"),
    ("predict dated.parquet", "column 'b': holds date32[day], expected numbers"),
    ("predict mixed.model undated.parquet", "column 'day': holds double, expected dates"),
    ("predict mixed.model undated.csv", "column 'day', row 2: 'soon' is not an ISO date"),
    ("predict mixed.model flags.csv", "column 'flag', row 2: 'maybe' is neither"),
    ("predict few.csv", "few.csv: row 2 after the header has 2 cells"),
    ("evaluate numbers.model no-y.csv", "no-y.csv has no column 'y': it has 'a', 'b'"),
    ("evaluate numbers.model gap.csv", "column 'y', row 3: the target is"),
    ("evaluate numbers.model header.csv", "header.csv has no rows"),
    ("evaluate numbers.model far.csv", "error: far.csv: column 'b', row 1: 1e+308 is too large: expected at most 1e+1"),
    ("compare numbers.csv --store good.json", "good.json"),
    ("compare good.csv -o table.txt", "ends in .csv or .parquet"),
    ("compare two.csv", "rows"),
    ("explore good.csv --target y -o page.pdf", "a name that ends in .html"),
    ("demo -o good.csv", "output good.csv is a file: expected a folder"),
    ("export numbers.model -o y.pkl", "error: output y.pkl: expected a name that ends in .onnx or .npz\n"),
    ("monitor numbers.model good.csv -o m.txt", "expected a name that ends in .png, .pdf, .svg"),
    ("monitor numbers.model good.csv -o m.png --table t.xls", "table t.xls: expected a name that ends in .csv"),
    ("recalibrate numbers.model good.csv -o good.csv", "good.csv is also an input"),
    ("recalibrate numbers.model good.csv -o n.model --target price", "good.csv has no column 'price'"),
    ("card numbers.model -o card.pdf", "output card.pdf: expected a name that ends in .html"),
    ("card numbers.model -o card.html --groups a", "--groups without --data: expected a table"),
    ("card numbers.model -o card.html --target y", "--target without --data: expected a table"),
    ("card numbers.model -o card.html --data none.csv", "none.csv: no such file"),
    ("card numbers.model -o card.html --data good.csv --target z", "no column 'z'"),
    ("card numbers.model -o card.html --data good.csv --groups z", "no column 'z'"),
    ("card numbers.model -o no/card.html", "there is no folder no"),
    ("card numbers.model -o good.csv --data good.csv", "expected a name that ends in .html"),
]


def texts():
    """Files of text by name."""
    return {
        "good.csv": GOOD,
        "good.xlsx": GOOD,
        "good.json": "{}\n",
        "good.pkl": GOOD,
        "table.model": GOOD,
        "bad.parquet": GOOD,
        "empty.csv": "",
        "header.csv": "a,b,y\n\n",
        "blank.csv": "\na,b,y\n1,2,3\n",
        "numbers-only.csv": "1,2,3\n4,5,6\n",
        "long-header.csv": GOOD.replace("a,b", '"a\na",b'),
        "semicolons.csv": GOOD.replace(",", ";"),
        "twice.csv": GOOD.replace("a,b", "a,a"),
        "nameless.csv": GOOD.replace("a,b", ",b"),
        "few.csv": GOOD.replace("4,5,6", "4,5"),
        "many.csv": GOOD.replace("1,2,3", "1,2,3,4"),
        "quotes.csv": GOOD.replace("1,2,3", '"1,2,3'),
        "gap.csv": GOOD.replace("7,8,10", "7,8,"),
        "infinite-target.csv": GOOD.replace("4,5,6", "4,5,inf"),
        "typo.csv": GOOD.replace("7,8,10", '"7,5",8,10'),
        "infinite.csv": GOOD.replace("1,2,3", "1,-inf,3"),
        "huge.csv": GOOD.replace("1,2,3", "1,1e999,3"),
        "far.csv": GOOD.replace("1,2,3", "1,1e308,3"),
        "far-target.csv": GOOD.replace("1,2,3", "1,2,1e308"),
        "moments.csv": "a,y\n1,2024-01-01\n2,2024-01-02\n",
        "dates.csv": "a,b,y\n1,2024-01-01,3\n4,2024-02-30,6\n7,2024-01-01,10\n",
        "gaps.csv": "a,b,y\n1,,3\n4,NA,6\n7,nan,10\n",
        "one.csv": "a,b,y\n1,2,3\n",
        "two.csv": "a,b,y\n1,2,3\n4,5,6\n",
        "lower.csv": "a,b,lower\n1,2,3\n",
        "no-y.csv": "a,b\n1,2\n",
        "undated.csv": "x,z,ward,flag,day\n1,2,north,true,2024-01-01\n1,2,north,true,soon\n",
        "flags.csv": "x,z,ward,flag,day\n1,2,north,true,2024-01-01\n1,2,north,maybe,2024-01-01\n",
    }


def parquets():
    """Data frames by the name of their Parquet file."""
    two = {"a": [1.0, 2.0], "y": [1.0, 2.0]}
    return {
        "good.parquet": pd.DataFrame({**two, "b": [1.0, 2.0]}),
        "lists.parquet": pd.DataFrame({**two, "b": [[1.0], [2.0]]}),
        "times.parquet": pd.DataFrame({**two, "b": [datetime.time(1), datetime.time(2)]}),
        "words.parquet": pd.DataFrame({**two, "b": ["two", "three"]}),
        "dated.parquet": pd.DataFrame({**two, "b": [datetime.date(2024, 1, 1)] * 2}),
        "moments.parquet": pd.DataFrame({"a": [1.0, 2.0], "y": [datetime.date(2024, 1, 1)] * 2}),
        "spans.parquet": pd.DataFrame({"a": [1.0, 2.0], "y": pd.to_timedelta([1, 2], "h")}),
        "undated.parquet": mixed_table(10).assign(day=1.0),
    }


@pytest.fixture(scope="module")
def bad_files(folder, tmp_path_factory):
    """A folder of files, most of which are bad."""
    place = tmp_path_factory.mktemp("bad")
    for name, text in texts().items():
        (place / name).write_text(text, encoding="utf-8")
    for name, frame in parquets().items():
        frame.to_parquet(place / name)
    for name in ("numbers.csv", "mixed.csv", "numbers.model", "mixed.model"):
        (place / name).write_bytes((folder / name).read_bytes())
    (place / "folder.csv").mkdir()
    (place / "latin.csv").write_bytes("a,b,y\n1,é,3\n".encode("latin-1"))
    (place / "latin-header.csv").write_bytes("a,é,y\n1,2,3\n".encode("latin-1"))
    (place / "cut.parquet").write_bytes((place / "good.parquet").read_bytes()[:-20])
    table = number_table()
    strange = SplitCP(RidgeCV(), random_state=0).fit(table[["a", "b"]], table.y)
    strange.note_ = Opaque()
    strange.save(place / "strange.model")
    boosted = library.load(place / "numbers.model")
    boosted.estimator_ = HistGradientBoostingRegressor(max_iter=2).fit(table[["a", "b"]], table.y)
    boosted.estimator_._predictors[0][0].nodes["feature_idx"][0] = 7
    boosted.save(place / "forged.model")
    (place / "user_models.py").write_text(MODELS)
    (place / "user_broken.py").write_text("1 / 0")
    (place / "cut.model").write_bytes((place / "numbers.model").read_bytes()[:-200])
    return place


@pytest.fixture
def at(bad_files, monkeypatch):
    """Work in this folder."""
    monkeypatch.chdir(bad_files)
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which the current folder is added
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return bad_files


def assert_refused(place, line, message, code):
    """Message on stderr, nothing on stdout, no file written or changed, no traceback, before the work begins."""
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    result = sosbands(*words_of(line))
    assert message in result.stderr
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_bad_command_lines_are_usage_errors(line, message, at):
    assert_refused(at, line, message, 2)


@pytest.mark.parametrize(("line", "message"), BAD_FILES)
def test_bad_files_are_failures_that_name_them(line, message, at):
    assert_refused(at, line, message, 1)
    assert len(BAD_LINES) + len(BAD_FILES) >= 120


def test_the_checks_themselves_can_fail(at):
    with pytest.raises(AssertionError):
        assert_refused(at, "--version", "", 1)
    with pytest.raises(AssertionError):
        assert_refused(at, "fit absent.csv", "another message", 1)


def test_a_late_mistake_leaves_the_old_output_alone(folder, tmp_path):
    rows = "".join("0.1,0.2\n" for _ in range(100_000))
    (tmp_path / "long.csv").write_text(f"a,b\n{rows}0.1,oops\n")
    (tmp_path / "out.csv").write_text("old")
    message = refused("predict", folder / "numbers.model", tmp_path / "long.csv", "-o", tmp_path / "out.csv")
    assert "column 'b', row 100001: 'oops' is not a number" in message
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.csv", "out.csv"]


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("words", [["--debug", *words_of("fit absent.csv")], [*words_of("fit absent.csv"), "--debug"]])
def test_debug_shows_the_traceback_anywhere_on_the_line(words):
    message = refused(*words)
    assert "Traceback (most recent call last)" in message
    assert message.endswith("error: absent.csv: no such file\n")


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize(
    ("raised", "code", "told"),
    [
        (ZeroDivisionError("why"), 1, "error: ZeroDivisionError: why (run with --debug to see where)"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (program.Stopped(2), 130, "interrupted"),
        (program.Stopped(15), 143, "interrupted"),
    ],
)
def test_surprises_are_named_and_interruptions_have_their_exit_code(monkeypatch, raised, code, told):
    def surprise(*_):
        raise raised

    monkeypatch.setattr("sosbands.cli.fit.learn_columns", surprise)
    assert refused(*words_of("fit good.csv"), code=code).splitlines()[-1] == told


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("package", ["pyarrow", "pandas"])
def test_missing_packages_are_named_with_their_extra(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    message = refused(*words_of("fit good.csv"))
    assert "pip install pandas pyarrow" in message
    assert f"this needs {package}, which cannot be imported" in message
