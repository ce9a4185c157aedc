"""What a wheel and a source archive hold."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sosbands"
BESIDE = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "SECURITY.md", "pyproject.toml")
WRITTEN_BY_THE_BUILD = ("PKG-INFO", ".gitignore")


def package_files() -> set[str]:
    """Files that a release must hold, by their path in the folder of sources: modules, py.typed, parts of the page."""
    files = (file for file in PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(PACKAGE.parent).as_posix() for file in files}


def wheel_names(file: Path) -> list[str]:
    """Members of a wheel."""
    with zipfile.ZipFile(file) as archive:
        return archive.namelist()


def sdist_names(file: Path) -> list[str]:
    """Members of a source archive, without the folder that holds them all."""
    with tarfile.open(file) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


def wheel_faults(names: Iterable[str], version: str) -> list[str]:
    """What a wheel lacks, and what it holds besides: the package, and a description with the licence."""
    about = f"sosbands-{version}.dist-info/"
    described = {about + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    return _differences(set(names), package_files() | described)


def sdist_faults(names: Iterable[str]) -> list[str]:
    """The same of a source archive: what a wheel is built from, and neither tests nor data."""
    wanted = {f"src/{name}" for name in package_files()} | set(BESIDE)
    return _differences(set(names) - set(WRITTEN_BY_THE_BUILD), wanted)


def _differences(found: set[str], wanted: set[str]) -> list[str]:
    return [f"missing {name}" for name in sorted(wanted - found)] + [f"extra {name}" for name in sorted(found - wanted)]
