"""A release: one version everywhere, public names as pages list them, types as users see them, what archives hold."""

import importlib
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sosbands
from release.contents import BESIDE, ROOT, package_files, sdist_faults, wheel_faults

ADVANCED = {"problems", "solvers"}  # of those who extend the package, without a promise
PUBLIC = ("sosbands", *(f"sosbands.{room}" for room in sosbands._ROOMS if room not in ADVANCED))
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


# ---------------------------------------------------------------- versions


def citation_faults(text):
    """What keeps a text from being a citation file: fields that version 1.2.0 of the format demands, and ours."""
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with myst-parser and dask")
    cited = yaml.safe_load(text)
    faults = [key for key in ("cff-version", "message", "title", "authors", "version", "license") if key not in cited]
    faults += [] if cited.get("cff-version") == "1.2.0" else ["another cff-version"]
    everybody = [*cited.get("authors", []), *(a for each in cited.get("references", []) for a in each["authors"])]
    faults += [f"{a}" for a in everybody if set(a) not in ({"name"}, {"family-names", "given-names"})]
    faults += [] if cited.get("version") == sosbands.__version__ else ["another version"]
    faults += [] if cited.get("license") == PROJECT["project"]["license"] else ["another license"]
    faults += [each["title"] for each in cited.get("references", []) if each.get("type") not in ("article", "software")]
    return faults


def test_the_citation_is_valid_and_of_this_version():
    assert citation_faults(read("CITATION.cff")) == []
    assert citation_faults("cff-version: 1.1.0\ntitle: x\nmessage: y\nversion: 9\nauthors: [{nick: z}]\n") == [
        "license",
        "another cff-version",
        "{'nick': 'z'}",
        "another version",
        "another license",
    ]


def changelog_faults(text, version):
    """What is not as Keep a Changelog has it: versions in order, known kinds of change, each once, none empty."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    titles = [section.splitlines()[0] for section in sections]
    shape = r"\[(Unreleased|\d+\.\d+\.\d+)\]( - \d{4}-\d\d-\d\d)?"
    faults = [title for title in titles if not re.fullmatch(shape, title)]
    released = [tuple(map(int, found[1].split("."))) for t in titles if (found := re.match(r"\[(\d+\.\d+\.\d+)\]", t))]
    faults += [] if released == sorted(released, reverse=True) else ["versions out of order"]
    current = "[Unreleased]" if ".dev" in version else f"[{version}] - "
    faults += [] if titles and titles[0].startswith(current) else [f"does not begin with {current}"]
    for title, section in zip(titles, sections, strict=True):
        kinds = re.findall(r"^### (.+)$", section, flags=re.MULTILINE)
        faults += [f"{title} {kind}" for kind in kinds if kind not in KINDS or kinds.count(kind) > 1]
        bodies = re.split(r"^### .+$", section, flags=re.MULTILINE)[1:]
        faults += [f"{title} {kind}: empty" for kind, body in zip(kinds, bodies, strict=True) if not body.strip()]
    return faults


def test_the_changelog_has_a_section_for_this_version_and_known_kinds_of_change():
    assert changelog_faults(read("CHANGELOG.md"), sosbands.__version__) == []
    text = "# C\n\n## [0.1.0]\n\n### Added\n\n### News\n\n- a\n\n## [0.2.0] - 2026-01-01\n\n### Fixed\n\n- b\n"
    assert changelog_faults(text, "0.3.0.dev1") == [
        "versions out of order",
        "does not begin with [Unreleased]",
        "[0.1.0] News",
        "[0.1.0] Added: empty",
    ]


def test_the_version_stands_in_one_place():
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/sosbands/_extras.py"
    number = sosbands.__version__.partition(".dev")[0]
    assert f"Version {number}" in read("README.md")
    assert 'installed_version("sosbands")' in read("docs/conf.py")


def test_every_dependency_has_a_lowest_version():
    project = PROJECT["project"]
    wanted = sum(project["optional-dependencies"].values(), start=project["dependencies"])
    named = [each for each in wanted if not each.startswith("sosbands[")]
    assert [each for each in named if ">=" not in each] == []
    assert len(named) > 20


# ---------------------------------------------------------------- public names


def names_of(full):
    """Names that a module offers: its `__all__`, or the classes that it defines."""
    module = importlib.import_module(full)
    classes = [name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == full]
    return set(getattr(module, "__all__", classes))


def listed(page):
    """Names in the table of the page of public names, by module."""
    rows = re.findall(r"^\| `(sosbands[.\w]*)` \| (.+) \|$", page, flags=re.MULTILINE)
    return {module: set(re.findall(r"`(\w+)`", names)) for module, names in rows}


def loose(page):
    """Names in the list below it, of what may change, by module."""
    items = re.findall(r"^- `(sosbands\.\w+)`: ((?:`\w+`,?\s+)+)", page, flags=re.MULTILINE)
    return {module: set(re.findall(r"`(\w+)`", names)) for module, names in items}


def documented(page, full):
    """Names in a section of the reference: those with a page of their own, and those that its text mentions."""
    section = page.partition(f".. currentmodule:: {full}\n")[2].partition(".. currentmodule::")[0]
    mentioned = re.findall(r"``(\w+)``|:func:`sosbands\.(\w+)`", section)
    pages = re.findall(r"^   (\w+)$", section, flags=re.MULTILINE)
    assert len(pages) == len(set(pages)), full
    return {*pages, *("".join(pair) for pair in mentioned)}


def test_the_page_the_reference_and_the_modules_have_the_same_names():
    page = read("docs/api.md")
    stable, changing = listed(page), loose(page)
    assert {*stable, *changing} == set(PUBLIC)
    for module in PUBLIC:
        home = set() if module == "sosbands" else stable["sosbands"]  # also in the rooms where they live
        named = stable.get(module, set()), changing.get(module, set())
        assert named[0] & named[1] == set(), module
        assert named[0] | named[1] == names_of(module) - home, module
    for module, names in listed(page).items():
        if module != "sosbands.exceptions":  # which the reference documents as a whole
            assert documented(page, module) == names, module
        at = importlib.import_module(module)
        assert [name for name in names if name.startswith("_") or not hasattr(at, name)] == []
    assert listed(page.replace("`TableEncoder`", "`Encoder`"))["sosbands.tables"] == {"Encoder"}
    assert loose(page.replace("`TypicalRows`", "`Rows`"))["sosbands.explanation"] == {"Rows"}
    assert documented(page.replace("   TableEncoder\n", ""), "sosbands.tables") == set()


# ---------------------------------------------------------------- types

SETTINGS = """
[mypy]
strict = True
mypy_path = installed
cache_dir = {cache}
[mypy-sosbands.*]
follow_imports = silent
"""  # a user sees no faults inside of the package, and has none of its settings


def type_errors(tmp_path, **programs):
    """What mypy says of programs that import the package, by program and line."""
    pytest.importorskip("mypy", reason="mypy is not installed: pip install sosbands[dev]")
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "sosbands").symlink_to(Path(sosbands.__file__).parent)
    (tmp_path / "mypy.ini").write_text(SETTINGS.format(cache=ROOT / ".mypy_cache" / "user_program"))
    for name, program in programs.items():
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    words = [sys.executable, "-m", "mypy", "--no-error-summary", *(f"{name}.py" for name in programs)]
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=clean)
    assert done.stderr == ""
    return [(line.partition(".py:")[0], re.findall(r"\[([\w-]+)\]$", line)) for line in done.stdout.splitlines()]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_the_types_of_the_package_are_those_that_a_program_of_a_user_expects(tmp_path):
    program = read("release/user_program.py")
    assert program.count("assert_type(") > 10
    wrong = program.replace("assert_type(model.summary(), str)", "assert_type(model.summary(), bytes)")
    wrong = wrong.replace("found.gap < 1e-2", "found.gaps < 1e-2").replace("normalize=True", "normalise=True")
    found = type_errors(tmp_path, program=program, wrong=wrong)
    assert [codes for name, codes in found if name == "wrong" and codes] == [
        ["assert-type"],
        ["call-arg"],
        ["attr-defined"],
    ]
    assert [name for name, _ in found if name == "program"] == []


# ---------------------------------------------------------------- archives

ABOUT = [f"sosbands-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")]
ABOUT += ["sosbands-1.0.dist-info/licenses/LICENSE"]


def test_the_wheel_holds_the_package_and_its_licence():
    files = sorted(package_files())
    assert {"sosbands/py.typed", "sosbands/report/page.html", "sosbands/report/page.css"} < set(files)
    assert wheel_faults(files + ABOUT, "1.0") == []
    left = [name for name in files if name != "sosbands/py.typed"]
    found = wheel_faults([*left, "tests/data.csv", *ABOUT], "1.0")
    assert found == ["missing sosbands/py.typed", "extra tests/data.csv"]


def test_the_source_archive_holds_what_a_wheel_is_built_from_and_no_data():
    files = [f"src/{name}" for name in package_files()]
    assert sdist_faults([*files, *BESIDE, "PKG-INFO", ".gitignore"]) == []
    assert sdist_faults([*files, *BESIDE[1:], "results/rows.csv"]) == [f"missing {BESIDE[0]}", "extra results/rows.csv"]
    assert [name for name in BESIDE if not (ROOT / name).is_file()] == []
