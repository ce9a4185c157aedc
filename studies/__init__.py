"""Every figure and table of the paper, and some beyond it, by name.

An entry is a file of `entries/` with `compute(config)`, which gives rows, and `draw(rows)`, which makes a figure or a
table of them; `catalogue` lists them. ``python -m studies reproduce`` runs them. Importing this package loads no
plotting library.
"""

from studies.catalogue import ENTRIES, Entry, find_entry
from studies.runs.config import Config

__all__ = ["ENTRIES", "Config", "Entry", "find_entry"]
