"""The pictures of the pages and their quotations: certificates hold, drawn is what is said, quoted is the code."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = r"([-+.\de]+)"


def example(name):
    spec = importlib.util.spec_from_file_location(f"sosbands_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # the dataclass of a script looks its module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def demo():
    return example("three_bands")


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
    (_, first), (second, then), (third, _) = values
    assert first < second
    assert then < third
    widths = numbers(rf"symmetry_penalty=\S+ +{NUMBER} +{NUMBER} +{NUMBER}\n", printed)
    assert len(widths) == 3
    for below, above, total in widths:
        assert below + above == pytest.approx(total, abs=2e-3)
    differences = [abs(below - above) for below, above, _ in widths]
    assert differences[0] > differences[1] > differences[2] == 0
    assert picture == tmp_path / "new" / "folder" / "bands.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
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


def test_the_picture_of_the_readme_shows_what_evaluate_says():
    script = example("skewed_table")
    models, X, y = script.learn(160)
    figure = script.draw(models, X, y)
    assert [axes.get_title().partition(":")[0] for axes in figure.axes] == ["split CP", "sosbands"]
    for axes, model in zip(figure.axes, models.values(), strict=True):
        row = model.evaluate(X, y)
        assert f"{row['coverage']:.0%} inside, mean width {row['mean_width']:.1f}" in axes.get_title()
        below, above = (bars.get_segments() for bars in axes.collections[:2])
        lengths = [abs(y1 - y0) for bars in (below, above) for (_, y0), (_, y1) in bars]
        assert sum(lengths) == pytest.approx(80 * row["mean_width"])
        inside, outside = (len(dots.get_offsets()) for dots in axes.collections[2:4])
        assert (inside, outside) == (round(80 * row["coverage"]), 80 - round(80 * row["coverage"]))


def quotations():
    text = (ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python")
    return [(path, line.strip()) for path, block in blocks for line in block.splitlines()]


def test_code_quoted_in_the_docs_is_the_code():
    for path, line in quotations():
        source = (ROOT / "src" / "sosbands" / path).read_text(encoding="utf-8")
        assert line in [each.strip() for each in source.splitlines()]
