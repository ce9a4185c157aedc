"""Comparing interval regressors: paired splits, a resumable runner, a store, and differences with intervals."""

from sosbands.comparison.compare import compare
from sosbands.comparison.describe import environment, seed_of
from sosbands.comparison.judgement import judgement
from sosbands.comparison.result import ComparisonResult, MeanInterval, Split, SplitSizes, corrected_interval
from sosbands.comparison.runner import run_tasks
from sosbands.comparison.store import Store, StoreContents, StoreError, StoreMismatchError, read_store
from sosbands.comparison.text_table import TextTable

__all__ = [
    "ComparisonResult",
    "MeanInterval",
    "Split",
    "SplitSizes",
    "Store",
    "StoreContents",
    "StoreError",
    "StoreMismatchError",
    "TextTable",
    "compare",
    "corrected_interval",
    "environment",
    "judgement",
    "read_store",
    "run_tasks",
    "seed_of",
]
