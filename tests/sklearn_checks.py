"""scikit-learn's checks that do not hold here, with the reason; shared by the suites that run them."""

import inspect

EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
REASON = "copies of a row fall on both sides of a split, or into several folds, where a row with a weight does not"


def expected_failures(estimator):
    return {EQUIVALENCE: REASON} if "sample_weight" in inspect.signature(estimator.fit).parameters else {}
