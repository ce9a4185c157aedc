"""Bad command lines and bad files: a message that names the culprit, the right exit code, nothing written."""

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV

import sosbands as library
from cli_runs import FAST, done, mixed_table, number_table, sosbands
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


def fit(data, *words):
    return ["fit", data, "--target", "y", "-o", "out.model", *FAST, *words]


def predict(data, *words, model="numbers.model", output="out.csv"):
    return ["predict", model, data, "-o", output, *words]


# Command lines that are wrong in themselves: exit code 2.
BAD_WORDS = {
    "unknown command": (["lean"], "No such command 'lean'"),
    "nothing": (["fit"], "Missing argument 'DATA'"),
    "no target": (["fit", "good.csv", "-o", "out.model"], "Missing option '--target'"),
    "no output": (["fit", "good.csv", "--target", "y"], "Missing option '-o'"),
    "one argument too many": (fit("good.csv", "more.csv"), "unexpected extra argument"),
    "unknown option": (fit("good.csv", "--level", "0.9"), "No such option"),
    "level above 1": (fit("good.csv", "--confidence-level", "90"), "'90' is not between 0 and 1"),
    "level 0": (predict("good.csv", "--confidence-level", "0"), "'0' is not between 0 and 1"),
    "level is a word": (predict("good.csv", "--confidence-level", "high"), "'high' is not between 0 and 1"),
    "level is nan": (predict("good.csv", "--confidence-level", "nan"), "'nan' is not between 0 and 1"),
    "unknown model": (fit("good.csv", "--model", "tree"), "'tree' is not one of auto, gp, forest"),
    "unknown side": (fit("good.csv", "--side", "left"), "'left' is not one of both, lower, upper"),
    "all rows outliers": (fit("good.csv", "--outlier-fraction", "1"), "'1' is not a number from 0 on, below 1"),
    "rank 0": (fit("good.csv", "--rank", "0"), "'0' is not auto, exact, a whole number or a fraction"),
    "one bad level of two": (predict("good.csv", "--confidence-level", "0.8,90"), "'90' is not between 0 and 1"),
    "level twice": (predict("good.csv", "--confidence-level", "0.8,0.8"), "'0.8,0.8' names a level twice"),
    "no digits": (predict("good.csv", "--digits", "0"), "'0' is not a whole number from 1 to 17"),
    "unknown calibration": (fit("good.csv", "--calibration", "both"), "'both' is not one of symmetric, asymmetric"),
    "unknown score": (fit("good.csv", "--score", "times"), "'times' is not one of auto, added, scaled"),
    "unknown base scale": (fit("good.csv", "--base-scale", "tree"), "'tree' is not one of auto, none, model, forest"),
    "unknown noise features": (
        fit("good.csv", "--noise-features", "inputs+y"),
        "'inputs+y' is not auto, or some of inputs (or lengthscales), prediction and scale",
    ),
    "width penalty 0": (fit("good.csv", "--width-penalty", "0"), "'0' is not auto or a number > 0"),
    "learning coverage in percent": (
        fit("good.csv", "--learning-coverage", "90"),
        "'90' is not auto, or a number above 0 and up to 1",
    ),
    "negative seconds": (fit("good.csv", "--max-seconds", "-1"), "'-1' is not a number of seconds >= 0, or inf"),
    "calibration size 0": (fit("good.csv", "--calibration-size", "0"), "'0' is neither a fraction"),
    "calibration size 1.5": (fit("good.csv", "--calibration-size", "1.5"), "'1.5' is neither a fraction"),
    "calibration size is a word": (fit("good.csv", "--calibration-size", "half"), "'half' is neither a fraction"),
    "negative penalty": (fit("good.csv", "--symmetry-penalty", "-1"), "'-1' is not auto, a number >= 0"),
    "penalty is a word": (fit("good.csv", "--symmetry-penalty", "much"), "'much' is not auto, a number >= 0"),
    "lengthscale 0": (fit("good.csv", "--lengthscale", "0"), "'0' is not auto, median, a number > 0"),
    "lengthscale is nan": (fit("good.csv", "--lengthscale", "nan"), "'nan' is not auto, median, a number > 0"),
    "negative seed": (fit("good.csv", "--seed", "-1"), "'-1' is not a whole number from 0 to"),
    "seed is no integer": (fit("good.csv", "--seed", "1.5"), "'1.5' is not a whole number from 0 to"),
    "no processes": (fit("good.csv", "--jobs", "0"), "'0' is no number of processes"),
    "unknown method": (["compare", "good.csv", "--target", "y", "--methods", "sos,magic"], "'magic' is not one of sos"),
    "method twice": (["compare", "good.csv", "--target", "y", "--methods", "sos,sos"], "names a method twice"),
    "no repetitions": (
        ["compare", "good.csv", "--target", "y", "--repetitions", "0"],
        "'0' is not a whole number from 1",
    ),
    "predict without data": (["predict", "numbers.model", "-o", "out.csv"], "Missing argument 'DATA'"),
}

# Files and columns that are not as they should be: exit code 1.
BAD_FILES = {
    "no such file": (fit("absent.csv"), "absent.csv: no such file"),
    "unknown suffix": (fit("good.xlsx"), "good.xlsx: expected a name that ends in .csv or .parquet"),
    "a folder": (fit("folder.csv"), "folder.csv is a folder"),
    "empty": (fit("empty.csv"), "empty.csv is empty"),
    "header only": (fit("header.csv"), "header.csv has no rows"),
    "blank first line": (fit("blank.csv"), "its first line is empty, expected the names"),
    "no header": (fit("numbers-only.csv"), "its first line holds numbers only"),
    "semicolons": (fit("semicolons.csv"), "its first line is 'a;b;y', expected names with commas"),
    "names twice": (fit("twice.csv"), "several columns named 'a'"),
    "a column without a name": (fit("nameless.csv"), "column 1 has no name"),
    "a cell too few": (
        fit("few.csv"),
        "few.csv: row 2 after the header has 2 cells, expected 3, one per column: '4,5'",
    ),
    "a cell too many": (fit("many.csv"), "many.csv: row 1 after the header has 4 cells, expected 3"),
    "open quotes": (fit("quotes.csv"), "row 1 after the header has 1 cells"),
    "not UTF-8": (fit("latin.csv"), "invalid UTF8 data"),
    "header over two lines": (fit("long-header.csv"), "its first line is no row of names"),
    "header not UTF-8": (fit("latin-header.csv"), "its first line is no row of names in UTF-8"),
    "not Parquet": (fit("bad.parquet"), "bad.parquet is not a Parquet file, or damaged"),
    "cut off Parquet": (fit("cut.parquet"), "cut.parquet is not a Parquet file, or damaged"),
    "a list column": (fit("lists.parquet"), "column 'b': holds list<"),
    "a column of times": (fit("times.parquet"), "column 'b': holds time64[us], expected numbers, texts"),
    "no such target": (
        ["fit", "good.csv", "--target", "Y", "-o", "out.model"],
        "good.csv has no column 'Y': it has 'a', 'b', 'y'",
    ),
    "a misspelt target": (
        ["fit", "mixed.csv", "--target", "wrad", "-o", "out.model"],
        "no column 'wrad': did you mean 'ward'?",
    ),
    "target of texts": (
        ["fit", "mixed.csv", "--target", "ward", "-o", "out.model"],
        "column 'ward', row 1: 'south' is not a number (the target must be numbers)",
    ),
    "target missing in a row": (fit("gap.csv"), "gap.csv: column 'y', row 3: the target is missing"),
    "infinite target": (fit("infinite-target.csv"), "column 'y', row 2: inf is not a finite number"),
    "a typing error": (fit("typo.csv"), "typo.csv: column 'a', row 3: '7,5' is not a number, as 75% of the column"),
    "an infinite feature": (fit("infinite.csv"), "column 'b', row 1: -inf is not a finite number"),
    "a number too large": (fit("huge.csv"), "column 'b', row 1: inf is not a finite number"),
    "a wrong date": (fit("dates.csv"), "column 'b', row 2: '2024-02-30' is not an ISO date such as 2024-12-31"),
    "a column of gaps": (fit("gaps.csv"), "column 'b': every cell is missing; leave the column out with --drop"),
    "dropping nothing": (fit("good.csv", "--drop", "c"), "good.csv has no column 'c'"),
    "dropping the target": (fit("good.csv", "--drop", "y"), "column 'y' is the target"),
    "the target as category": (fit("good.csv", "--category", "y"), "column 'y' is the target"),
    "dropping everything": (fit("good.csv", "--drop", "a", "--drop", "b"), "no column left to learn from"),
    "spline of two columns": (fit("good.csv", "--model", "spline"), "spline needs one column of numbers, there are 2"),
    "one row": (fit("one.csv"), "1 row"),
    "calibration takes all": (fit("good.csv", "--calibration-size", "4"), "calibration_size=4 leaves none"),
    "output folder absent": (
        ["fit", "good.csv", "--target", "y", "-o", "no/out.model"],
        "output no/out.model: there is no folder no",
    ),
    "output is a folder": (["fit", "good.csv", "--target", "y", "-o", "folder.csv"], "output folder.csv is a folder"),
    "output is the input": (["fit", "good.csv", "--target", "y", "-o", "good.csv"], "good.csv is also an input"),
    "model instead of data": (predict("numbers.model"), "file numbers.model: expected a name that ends in .csv"),
    "no such model": (predict("good.csv", model="absent.model"), "model absent.model: no such file"),
    "data instead of model": (predict("good.csv", model="good.csv"), "not a model file of sosbands, or cut short"),
    "cut off model": (predict("good.csv", model="cut.model"), "not a model file of sosbands, or cut short"),
    "no such model file": (fit("good.csv", "--model", "m.joblib"), "--model m.joblib: no such file"),
    "no such module": (fit("good.csv", "--model", "absent:make"), "--model absent:make: there is no module absent in "),
    "no such object": (fit("good.csv", "--model", "user_models:make"), "user_models.py has no attribute 'make'"),
    "a module with a mistake": (
        fit("good.csv", "--model", "user_broken:x"),
        "importing user_broken failed (ZeroDivisionError: ",
    ),
    "a factory with a mistake": (fit("good.csv", "--model", "user_models:fail"), "calling it failed (KeyError: 'no')"),
    "an object that does not predict": (
        fit("good.csv", "--model", "user_models:number"),
        "--model user_models:number is a int without predict: expected a regressor",
    ),
    "a classifier": (fit("good.csv", "--model", "user_models:classifier"), "is the classifier DummyClassifier"),
    "a pickle of something else": (fit("good.csv", "--model", "good.pkl"), "--model good.pkl cannot be read ("),
    "a model of other columns": (
        fit("good.csv", "--model", "user_models:of_c"),
        "--model user_models:of_c was fitted to columns that are not there: 'c' (there are 'a', 'b')",
    ),
    "a model of more columns": (
        fit("good.csv", "--model", "user_models:of_three"),
        "was fitted to 3 columns without names, there are 2: 'a', 'b'",
    ),
    "a model that no file can hold": (
        fit("good.csv", "--model", "user_models:nameless"),
        "--model user_models:nameless: the model holds ['user_models.<lambda>'], which cannot be saved",
    ),
    "a model that fails": (
        fit("good.csv", "--model", "user_models:failing"),
        "--model user_models:failing fails to predict rows of good.csv (ValueError: not today)",
    ),
    "refit of one of ours": (fit("good.csv", "--refit"), "--refit with --model linear: expected a regressor of your"),
    "groups by the target": (fit("good.csv", "--groups", "y"), "--groups y: expected another column than the target"),
    "groups in no column": (fit("good.csv", "--groups", "ward"), "good.csv has no column 'ward'"),
    "a feature without groups": (fit("good.csv", "--groups-as-feature"), "--groups-as-feature without --groups"),
    "groups of a model without": (predict("good.csv", "--groups", "a"), "numbers.model was calibrated without groups"),
    "no such id": (predict("good.csv", "--id", "house"), "good.csv has no column 'house'"),
    "untrusted model": (predict("good.csv", model="strange.model"), "strange.model holds test_cli_errors.Opaque, and"),
    "another type trusted": (
        predict("good.csv", "--trust", "builtins.eval", model="strange.model"),
        "type\n  sosbands predict strange.model good.csv -o out.csv "
        "--trust builtins.eval --trust test_cli_errors.Opaque\n",
    ),
    "forged model": (
        predict("good.csv", "--trust", "builtins.eval", model="forged.model"),
        "damaged or forged: it holds a tree that splits a column that does not exist",
    ),
    "columns missing": (predict("mixed.csv"), "mixed.csv lacks the columns 'a', 'b' that the model was learnt from"),
    "unknown suffix to write": (predict("good.csv", output="out.txt"), "output out.txt: expected a name that ends in"),
    "predicting over the data": (predict("good.csv", output="good.csv"), "good.csv is also an input"),
    "output names taken": (
        predict("lower.csv", "--keep-columns"),
        "lower.csv has columns 'lower' already: rename them, or do not keep them",
    ),
    "a typing error in new rows": (predict("typo.csv"), "typo.csv: column 'a', row 3: '7,5' is not a number\n"),
    "texts for numbers": (predict("words.parquet"), "column 'b', row 1: 'two' is not a number"),
    "dates for numbers": (predict("dated.parquet"), "column 'b': holds date32[day], expected numbers"),
    "numbers for dates": (
        predict("undated.parquet", model="mixed.model"),
        "column 'day': holds double, expected dates",
    ),
    "texts for dates": (predict("undated.csv", model="mixed.model"), "column 'day', row 2: 'soon' is not an ISO date"),
    "neither true nor false": (predict("flags.csv", model="mixed.model"), "column 'flag', row 2: 'maybe' is neither"),
    "a short row in new rows": (predict("few.csv"), "few.csv: row 2 after the header has 2 cells"),
    "evaluate without truth": (
        ["evaluate", "numbers.model", "no-y.csv"],
        "no-y.csv has no column 'y': it has 'a', 'b'",
    ),
    "evaluate with gaps in the truth": (["evaluate", "numbers.model", "gap.csv"], "column 'y', row 3: the target is"),
    "evaluate no rows": (["evaluate", "numbers.model", "header.csv"], "header.csv has no rows"),
    "store that is none": (
        ["compare", "numbers.csv", "--target", "y", "--methods", "split", "--store", "good.json"],
        "good.json",
    ),
    "table of unknown format": (
        ["compare", "good.csv", "--target", "y", "-o", "table.txt"],
        "ends in .csv or .parquet",
    ),
    "too few rows to compare": (
        ["compare", "two.csv", "--target", "y", "--methods", "split", "--repetitions", "1"],
        "rows",
    ),
    "page of unknown format": (["explore", "good.csv", "--target", "y", "-o", "page.pdf"], "a name that ends in .html"),
    "demo into a file": (["demo", "-o", "good.csv"], "output good.csv is a file: expected a folder"),
}


def texts():
    """Files of text by name."""
    return {
        "good.csv": GOOD,
        "good.xlsx": GOOD,
        "good.json": "{}\n",
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
        "undated.parquet": mixed_table(10).assign(day=1.0),
    }


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory):
    """A folder of files, most of which are bad."""
    folder = tmp_path_factory.mktemp("bad")
    for name, text in texts().items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, frame in parquets().items():
        frame.to_parquet(folder / name)
    (folder / "folder.csv").mkdir()
    (folder / "latin.csv").write_bytes("a,b,y\n1,é,3\n".encode("latin-1"))
    (folder / "latin-header.csv").write_bytes("a,é,y\n1,2,3\n".encode("latin-1"))
    (folder / "bad.parquet").write_text(GOOD)
    (folder / "cut.parquet").write_bytes((folder / "good.parquet").read_bytes()[:-20])
    number_table().to_csv(folder / "numbers.csv", index=False)
    mixed_table().to_csv(folder / "mixed.csv", index=False)
    for name in ("numbers", "mixed"):
        done("fit", folder / f"{name}.csv", "--target", "y", "-o", folder / f"{name}.model", *FAST)
    table = number_table()
    strange = SplitCP(RidgeCV(), random_state=0).fit(table[["a", "b"]], table.y)
    strange.note_ = Opaque()
    strange.save(folder / "strange.model")
    boosted = library.load(folder / "numbers.model")
    boosted.estimator_ = HistGradientBoostingRegressor(max_iter=2).fit(table[["a", "b"]], table.y)
    boosted.estimator_._predictors[0][0].nodes["feature_idx"][0] = 7
    boosted.save(folder / "forged.model")
    (folder / "user_models.py").write_text(MODELS)
    (folder / "user_broken.py").write_text("1 / 0")
    (folder / "good.pkl").write_text(GOOD)
    (folder / "cut.model").write_bytes((folder / "numbers.model").read_bytes()[:-200])
    return folder


def assert_refused(bad_files, monkeypatch, words, message, code):
    """Message on stderr, nothing on stdout, no file written or changed, no traceback."""
    monkeypatch.chdir(bad_files)
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which the current folder is added
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = {path: path.stat().st_mtime_ns for path in bad_files.rglob("*")}
    result = sosbands(*words)
    assert message in result.stderr
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert {path: path.stat().st_mtime_ns for path in bad_files.rglob("*")} == before


@pytest.mark.parametrize("name", BAD_WORDS)
def test_bad_command_lines_are_usage_errors(name, bad_files, monkeypatch):
    assert_refused(bad_files, monkeypatch, *BAD_WORDS[name], 2)


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_failures_that_name_them(name, bad_files, monkeypatch):
    assert_refused(bad_files, monkeypatch, *BAD_FILES[name], 1)


def test_there_are_many_cases():
    assert len(BAD_WORDS) + len(BAD_FILES) >= 40


def test_a_store_of_other_settings_is_refused(bad_files, monkeypatch, tmp_path):
    words = ["compare", "numbers.csv", "--target", "y", "--methods", "split", "--repetitions", "1", "--model", "linear"]
    words += ["--store", str(tmp_path / "runs.jsonl")]
    monkeypatch.chdir(bad_files)
    done(*words)
    assert_refused(bad_files, monkeypatch, [*words, "--confidence-level", "0.8"], "confidence_level", 1)


def test_a_late_mistake_leaves_the_old_output_alone(bad_files, tmp_path):
    rows = "".join("0.1,0.2\n" for _ in range(100_000))
    (tmp_path / "long.csv").write_text(f"a,b\n{rows}0.1,oops\n")
    (tmp_path / "out.csv").write_text("old")
    result = sosbands("predict", bad_files / "numbers.model", tmp_path / "long.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert "column 'b', row 100001: 'oops' is not a number" in result.stderr
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.csv", "out.csv"]


def test_debug_shows_the_traceback_anywhere_on_the_line(bad_files, monkeypatch):
    monkeypatch.chdir(bad_files)
    for words in (["--debug", *fit("absent.csv")], [*fit("absent.csv"), "--debug"]):
        result = sosbands(*words)
        assert result.exit_code == 1
        assert "Traceback (most recent call last)" in result.stderr
        assert result.stderr.endswith("error: absent.csv: no such file\n")


def test_surprises_are_named_and_point_to_debug(bad_files, monkeypatch):
    def surprise(*_):
        raise ZeroDivisionError("why")

    monkeypatch.setattr("sosbands.cli.fit.learn_columns", surprise)
    monkeypatch.chdir(bad_files)
    result = sosbands(*fit("good.csv"))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "error: ZeroDivisionError: why (run with --debug to see where)"


@pytest.mark.parametrize(
    ("raised", "code"), [(KeyboardInterrupt(), 130), (program.Stopped(2), 130), (program.Stopped(15), 143)]
)
def test_interruptions_have_their_exit_code(bad_files, monkeypatch, raised, code):
    def interrupted(*_):
        raise raised

    monkeypatch.setattr("sosbands.cli.fit.learn_columns", interrupted)
    monkeypatch.chdir(bad_files)
    result = sosbands(*fit("good.csv"))
    assert result.exit_code == code
    assert result.stderr.splitlines()[-1] == "interrupted"


@pytest.mark.parametrize("package", ["pyarrow", "pandas"])
def test_missing_packages_are_named_with_their_extra(package, bad_files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    monkeypatch.chdir(bad_files)
    result = sosbands(*fit("good.csv"))
    assert result.exit_code == 1
    assert "pip install pandas pyarrow" in result.stderr
    assert f"this needs {package}, which cannot be imported" in result.stderr


def test_the_checks_themselves_can_fail(bad_files, monkeypatch):
    with pytest.raises(AssertionError):
        assert_refused(bad_files, monkeypatch, ["--version"], "", 1)
    with pytest.raises(AssertionError):
        assert_refused(bad_files, monkeypatch, fit("absent.csv"), "another message", 1)
    assert np.isfinite(number_table().to_numpy()).all()  # the tables themselves are not what is wrong


@pytest.mark.parametrize("kind", ["dates in a csv", "dates in parquet", "spans in parquet"])
def test_a_target_of_dates_or_spans_is_refused_with_advice(tmp_path, kind):
    table = number_table(30)
    table["y"] = pd.date_range("2024-01-01", periods=30) if "dates" in kind else pd.to_timedelta(range(30), "h")
    path = tmp_path / ("t.csv" if "csv" in kind else "t.parquet")
    table.to_csv(path, index=False) if "csv" in kind else table.to_parquet(path)
    result = sosbands("fit", path, "--target", "y", "-o", tmp_path / "y.model")
    assert result.exit_code == 1
    assert "column 'y'" in result.stderr
    assert "the target must be numbers; count dates in a unit from some date" in result.stderr


def test_values_at_the_ends_of_the_range_are_named(tmp_path):
    table = number_table(60)
    table.to_csv(tmp_path / "t.csv", index=False)
    done("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "y.model", *FAST)
    for column in ("y", "a"):
        odd = table.assign(**{column: [1e308, -1e308] * 30})
        odd.to_csv(tmp_path / "odd.csv", index=False)
        for words in (("evaluate", tmp_path / "y.model"), ("fit", "--target", "y", "-o", tmp_path / "z.model")):
            result = sosbands(*words, tmp_path / "odd.csv")
            assert result.exit_code == 1
            assert f"odd.csv: column {column!r}, row 1: 1e+308 is too large: expected at most 1e+150" in result.stderr
            assert "point model first" not in result.stderr  # before the work begins
