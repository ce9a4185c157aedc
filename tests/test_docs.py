"""The documentation: its code runs and prints what it says, its links hold, its examples compile.

Pages outside of the toctree and quoted code that is no more are errors of `make docs`.
"""

import ast
import re
from pathlib import Path

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

from sosbands.solvers.solve import SOLVERS

ROOT = Path(__file__).parents[1]
DOCS, GALLERY = ROOT / "docs", ROOT / "examples" / "gallery"
WRITTEN_BY_SPHINX = ("auto_examples", "generated", "_build")
RUN = ["README", "index", "which-setting", "distributions", "drift", "seeing", "files", "serving", "sharp-bits"]
RUN += ["architecture", "coming-from", "compare", "notation"]
RUN += [f"guide/{name}" for name in ("data", "model", "choice", "calibration")]
NETWORK = re.compile(r"urllib|requests|httpx|socket|urlopen|urlretrieve|fetch_\w+|load_real|read_html|https?://")


def pages():
    """Every page by its name in the site, with its text."""
    files = [file for file in DOCS.rglob("*.md") if file.relative_to(DOCS).parts[0] not in WRITTEN_BY_SPHINX]
    return {file.relative_to(DOCS).with_suffix("").as_posix(): file.read_text(encoding="utf-8") for file in files}


PAGES = pages()
TEXTS = PAGES | {"README": (ROOT / "README.md").read_text(encoding="utf-8")}
OTHER_TREES = parse_version(sklearn.__version__) < parse_version("1.8")  # the pages were written with newer ones
EXAMPLES = {file.stem: file.read_text(encoding="utf-8") for file in sorted(GALLERY.glob("plot_*.py"))}


# ---------------------------------------------------------------- code of the pages


def blocks(text):
    """Python blocks (not those marked `py`, parts of a program), each with the output that follows it, or None."""
    found = re.finditer(r"^```(\w+)\n(.*?)^```\n*(?=(```text\n)?)", text, flags=re.DOTALL | re.MULTILINE)
    parts = [(match[1], match[2], match.end(), bool(match[3])) for match in found]
    outputs = {
        start: code for (_, _, start, followed), (_, code, *_) in zip(parts, parts[1:], strict=False) if followed
    }
    return [(code, outputs.get(end)) for language, code, end, _ in parts if language == "python"]


def same_output(expected, printed, *, words_only=False):
    """The same words, and the same numbers up to what another machine may round; times and gaps are left to it."""
    numbers = r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?"
    if re.sub(numbers, "#", expected).split() != re.sub(numbers, "#", printed).split():
        return False
    if words_only:
        return True
    pairs = zip(re.findall(numbers + "(?: s)?", expected), re.findall(numbers + "(?: s)?", printed), strict=True)
    return all("e" in a + b or a.endswith("s") or same_number(a, b) for a, b in pairs)


def same_number(a, b):
    """Within two per cent, or one unit of the last decimal shown; whole numbers have no such unit."""
    decimals = len(a.partition(".")[2])
    unit = 1.001 * 10.0**-decimals if decimals else 0.0
    return abs(float(a) - float(b)) <= max(0.02 * abs(float(a)), unit)


@pytest.fixture
def a_place_of_its_own(tmp_path, monkeypatch):
    """Files go to a temporary folder; figures and solvers that a page adds do not outlive it."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the pages draw with matplotlib")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    solvers = dict(SOLVERS)
    yield tmp_path
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")
    SOLVERS.clear()
    SOLVERS.update(solvers)


def run(page, capsys):
    """Run the blocks of a page in their order; the names that they define."""
    for peer in re.findall(r"^from (mapie|crepes)\b", TEXTS[page], flags=re.MULTILINE):
        pytest.importorskip(peer, reason=f"{peer} is an optional peer: pip install {peer}")
    code = blocks(TEXTS[page])
    assert code
    names = {"__name__": page}
    for number, (block, output) in enumerate(code):
        exec(compile(block, f"{page}.md, block {number}", "exec"), names)
        printed = capsys.readouterr().out
        assert output is None or same_output(output, printed, words_only=OTHER_TREES), printed
    return names


@pytest.mark.usefixtures("a_place_of_its_own")
@pytest.mark.parametrize("page", RUN)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page, capsys):
    run(page, capsys)


def test_the_start_page_runs_and_writes_a_picture_and_a_model(a_place_of_its_own, capsys):
    names = run("start", capsys)
    assert (a_place_of_its_own / "deliveries.png").read_bytes().startswith(b"\x89PNG")
    assert (names["model"].predict_interval(names["X_test"]) == names["same"].predict_interval(names["X_test"])).all()


def test_outputs_are_compared():
    text = "```python\nprint(1)\n```\n\n```text\nwidth 10.0 in 3 s, gap 1e-5\n```\n\n```python\nprint(2)\n```\n\nEnd.\n"
    assert blocks(text) == [("print(1)\n", "width 10.0 in 3 s, gap 1e-5\n"), ("print(2)\n", None)]
    assert same_output("width 10.0 in 3 s, gap 1e-5", "width  10.2 in 9 s, gap 8e-7")
    assert same_output("0.91 inside", "0.92 inside")
    assert not same_output("width 10.0", "height 10.0")
    wrong = [("0.5 inside", "0.9 inside"), ("0.9 inside", "0.5 inside"), ("0.91", "0.94"), ("10.0", "10.3")]
    wrong += [("-1.5", "1.5"), ("5 rows", "6 rows"), ("442 rows", "452 rows")]
    assert [pair for pair in wrong if same_output(*pair)] == []


# ---------------------------------------------------------------- pages and links


def anchors(text):
    """Headings as GitHub and MyST name them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def dead_links(name, text, texts, root=DOCS):
    """Targets of links that do not exist."""
    folder, dead = (root / name).parent, []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" in target:
            continue
        file = (folder / target).resolve() if target else (root / f"{name}.md")
        page = file.relative_to(root).with_suffix("").as_posix() if file.is_relative_to(root) else None
        if page is not None and page.startswith("auto_examples/"):  # which Sphinx makes of the gallery
            fine = page.removeprefix("auto_examples/") in ("index", *EXAMPLES) and not anchor
        else:
            fine = (file.exists() or page in texts) and (not anchor or anchor in anchors(texts.get(page, "")))
        if not fine:
            dead.append(f"{target}#{anchor}")
    return dead


def test_links_and_their_anchors_lead_somewhere():
    assert {name: dead for name, text in PAGES.items() if (dead := dead_links(name, text, PAGES))} == {}
    front, docs = sorted(ROOT.glob("*.md")), {f"docs/{page}": each for page, each in PAGES.items()}
    assert len(front) >= 4
    assert [each for file in front for each in dead_links(file.stem, file.read_text("utf-8"), docs, ROOT)] == []
    texts = {"a": "# One two\n", "guide/b": ""}
    text = "[x](../a.md#one-two) [y](../a.md#three) [z](../c.md) [w](../auto_examples/plot_nothing.rst)"
    assert dead_links("guide/b", text, texts) == ["../a.md#three", "../c.md#", "../auto_examples/plot_nothing.rst#"]


def exists(name, room):
    """Whether a room has this file; without a room, whether there is one of this name or path anywhere."""
    package = ROOT / "src" / "sosbands"
    if room and "/" not in name and (package / room).is_dir():
        return (package / room / name).is_file()
    if "/" in name:
        return any((place / name).is_file() for place in (ROOT, package, ROOT / "studies"))
    return any(any(place.rglob(name)) for place in (package, ROOT / "studies", ROOT / "tests"))


def lost_files(text):
    """Files named in backticks that do not exist; those in the row of a room must be in the room."""
    rows = [(line, re.match(r"\| `(\w+)/` \|", line)) for line in text.splitlines()]
    named = [(name, row and row[1]) for line, row in rows for name in re.findall(r"`([\w/]+\.(?:py|js|md|csv))`", line)]
    return [name for name, room in named if not exists(name, room)]


def test_files_that_the_architecture_names_exist():
    assert PAGES["architecture"].count(".py`") > 40
    assert lost_files(PAGES["architecture"]) == []
    assert lost_files("| `bands/` | `learn.py`, `newton.py` (of another room) |") == ["newton.py"]
    assert lost_files("`newton.py`, `bands/learn.py`, `bands/old.py`, `old.py`") == ["bands/old.py", "old.py"]


# ---------------------------------------------------------------- the gallery


def faults(source):
    """What keeps a script from being an example of the gallery."""
    tree = ast.parse(source)
    found = NETWORK.findall(source)
    docstring = (ast.get_docstring(tree) or "").splitlines()
    if len(docstring) < 4 or set(docstring[1]) != {"="} or len(docstring[1]) != len(docstring[0]):
        found.append("no underlined title")
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if "plt.show" not in calls:
        found.append("no picture")
    return found


def test_examples_compile_show_a_picture_need_no_network_and_have_an_order():
    for name, source in EXAMPLES.items():
        compile(source, f"{name}.py", "exec")
        assert faults(source) == [], name
    order = re.findall(r'"(plot_\w+)\.py"', (DOCS / "conf.py").read_text(encoding="utf-8"))
    assert len(EXAMPLES) >= 8
    assert sorted(order) == sorted(EXAMPLES)
    assert faults('"""Title."""\nfrom sklearn.datasets import fetch_openml\n') == [
        "fetch_openml",
        "no underlined title",
        "no picture",
    ]
