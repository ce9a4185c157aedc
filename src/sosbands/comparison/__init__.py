"""Comparing interval regressors: paired splits, a resumable runner, a store, and differences with intervals."""

from sosbands.comparison.axes import seed_of
from sosbands.comparison.environment import environment
from sosbands.comparison.judgement import judgement
from sosbands.comparison.line_file import StoreError
from sosbands.comparison.method_comparison import compare
from sosbands.comparison.resampling import MeanInterval, corrected_interval
from sosbands.comparison.result import ComparisonResult
from sosbands.comparison.runner import run_tasks
from sosbands.comparison.splits import Split, SplitSizes
from sosbands.comparison.store import Store, StoreContents, StoreMismatchError, read_store
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
