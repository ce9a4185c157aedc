"""Configuration of the documentation site: ``sphinx-build -W --keep-going -n docs build/docs``, without network."""

from __future__ import annotations

import inspect
import os
import re
from importlib.metadata import version as installed_version
from typing import Any

from sphinx_gallery.sorting import ExplicitOrder

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the matrices of the examples are small
os.environ.setdefault("MPLBACKEND", "Agg")

project = "sosbands"
author = "the sosbands developers"
copyright = author
release = installed_version("sosbands")
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
nitpicky = True

# Pages are read on GitHub too: links by file name, anchors as there.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# A name in single backticks is a link where it is that of a documented object, and code otherwise.
default_role = "py:obj"
nitpick_ignore_regex = [
    ("py:mod", r"sosbands\..*"),  # modules have no page of their own
    ("py:obj", ".*"),
    # base classes of scikit-learn and of the standard library; no inventories are fetched
    ("py:class", r"(sklearn|enum|typing|builtins|collections|numpy|pandas|matplotlib)\..*"),
]
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what each parameter is
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False  # the templates list them
numpydoc_attributes_as_param_list = True
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = f"sosbands {release}"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#005B8E"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": re.escape(os.sep) + "plot_",
    # from the first example that a reader should see to the last; new ones follow
    "within_subsection_order": ExplicitOrder(
        [
            "plot_skewed_noise.py",
            "plot_diabetes.py",
            "plot_any_model.py",
            "plot_local_coverage.py",
            "plot_tuning_report.py",
            "plot_shaping_rows.py",
            "plot_two_sided_calibration.py",
            "plot_groups.py",
            "plot_covariate_shift.py",
            "plot_drift.py",
            "plot_off_the_data.py",
            "plot_own_kernel.py",
            "plot_compare_methods.py",
            "plot_save_and_load.py",
            "*",
        ]
    ),
    "abort_on_example_error": True,
    "doc_module": ("sosbands",),
    "backreferences_dir": "generated/backreferences",
    "reference_url": {"sosbands": None},
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (520, 480),  # of one picture, so that its letters can be read
}


def _skip_foreign(_app: Any, _what: str, _name: str, obj: Any, skip: bool, _options: Any) -> bool | None:
    """Leave out members that scikit-learn or Python define: their docstrings refer to pages that are not here."""
    function = getattr(obj, "fget", None) or inspect.unwrap(getattr(obj, "__func__", obj))
    home = getattr(function, "__module__", None)
    return True if home is not None and not home.startswith("sosbands") else skip or None


def _find_by_last_name(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve a bare name, as docstrings use it, to the one documented object of that name."""
    if node.get("refdomain") != "py":
        return None
    domain, target = env.get_domain("py"), node["reftarget"]
    found = [name for name in domain.objects if name.endswith(f".{target}")]
    if len(found) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, contnode)


def setup(app: Any) -> None:
    """Connect the hooks above."""
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("missing-reference", _find_by_last_name)
