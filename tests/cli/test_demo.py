"""The picture of the README, its code and its quotations: certificates hold, blocks run, links lead somewhere."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "three_bands.py"
NUMBER = r"([-+.\de]+)"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("sosbands_demo", DEMO)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # the dataclass of the script looks its module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def learnt(demo):
    return demo.learn()


def numbers(pattern, text):
    """All matches of a pattern, as tuples of floats."""
    found = [match.groups() for match in re.finditer(pattern, text)]
    return [tuple(float(number) for number in row) for row in found]


def test_demo_prints_certificates_that_hold_and_writes_a_picture(demo, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    picture = demo.main(output=tmp_path / "new" / "folder")
    printed = capsys.readouterr().out

    gaps = numbers(rf"converged: certified relative gap {NUMBER}\)", printed)
    values = numbers(rf"optimal value  between {NUMBER} and {NUMBER}", printed)
    assert len(gaps) == len(values) == 3
    for (gap,), (dual, primal) in zip(gaps, values, strict=True):
        assert 0 <= gap <= 1e-4
        # eight digits of each value and two of the gap are printed
        assert (primal - dual) / primal == pytest.approx(gap, rel=0.06, abs=1e-7)

    # A stronger pull towards symmetry raises the optimal value, here by more than the gaps.
    duals, primals = zip(*values, strict=True)
    assert primals[0] < duals[1]
    assert primals[1] < duals[2]

    widths = numbers(rf"symmetry_penalty=\S+ +{NUMBER} +{NUMBER} +{NUMBER}\n", printed)
    assert len(widths) == 3
    for below, above, total in widths:
        assert below + above == pytest.approx(total, abs=2e-3)
    differences = [abs(below - above) for below, above, _ in widths]
    assert differences[0] > differences[1] > differences[2] == 0

    assert picture == tmp_path / "new" / "folder" / "bands.png"
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 20_000
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_bands_of_the_demo_cover_every_learning_row(learnt):
    residuals = learnt.y - learnt.model.predict(learnt.X)
    for bands in learnt.bands.values():
        assert (bands.lower(learnt.X) >= -residuals - 1e-8).all()
        assert (bands.upper(learnt.X) >= residuals - 1e-8).all()
        assert bands.gap <= 1e-4


def test_the_three_panels_share_their_y_axis(demo, learnt):
    figure = demo.draw(learnt)
    figure.canvas.draw()
    assert len(figure.axes) == 3
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert all(axes.get_title() for axes in figure.axes)


def readme_code():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_estimator_of_the_readme_runs_as_printed(capsys):
    names = {}
    exec(compile(readme_code()[0], "README.md", "exec"), names)
    coverage, _, summary = capsys.readouterr().out.partition("\n")
    assert re.search(r"Calibrated on 16[56] rows: at least 90% of new rows", summary)
    intervals, y = names["intervals"], names["y_test"]
    assert float(coverage) == round(float(np.mean((intervals[:, 0] <= y) & (y <= intervals[:, 1]))), 3)
    assert 0.8 <= float(coverage) <= 0.98


def test_the_bands_of_the_readme_run_as_printed(capsys):
    assert len(readme_code()) == 2
    names = {}
    exec(compile(readme_code()[1], "README.md", "exec"), names)
    assert capsys.readouterr().out.startswith("BandSolution(converged: certified relative gap")
    bands, residuals = names["bands"], names["residuals"]
    assert bands.gap <= 1e-4
    assert (bands.lower(names["X"]) >= -residuals - 1e-8).all()
    assert (bands.upper(names["X"]) >= residuals - 1e-8).all()
    assert bands.values_upper.mean() > 1.5 * bands.values_lower.mean()  # the noise is skewed upwards
    assert (names["lower"] <= names["upper"]).all()


def pages():
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    made = [target for target in local if target.startswith("auto_examples/")]  # from the gallery; tests/test_docs.py
    missing = [target for target in local if target not in made and not (page.parent / target).exists()]
    assert not missing


def quotations():
    text = (ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python")
    return [(path, line.strip()) for path, block in blocks for line in block.splitlines()]


@pytest.mark.parametrize(("path", "line"), quotations())
def test_code_quoted_in_the_docs_is_the_code(path, line):
    source = (ROOT / "src" / "sosbands" / path).read_text(encoding="utf-8")
    assert line in [each.strip() for each in source.splitlines()]
