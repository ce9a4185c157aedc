"""Every figure and table of the paper, and some beyond it, by name.

An entry is a file of this room with `compute(config)`, which gives rows, and `draw(rows)`, which makes a figure or a
table of them; `catalogue` lists them. ``sosbands reproduce`` runs them. Importing this room loads no plotting library.
"""

from sosbands.experiments.catalogue import ENTRIES, Entry, find_entry
from sosbands.experiments.config import Config

__all__ = ["ENTRIES", "Config", "Entry", "find_entry"]
