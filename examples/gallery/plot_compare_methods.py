"""
Comparing methods
=================

Every interval regressor of the package has the same interface, so they can be compared on the
same splits. Differences between methods are paired, and their confidence intervals take into
account that the splits share rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV

from sosbands import SoSBandRegressor
from sosbands.baselines import LocallyWeightedCP, QuantileForestCQR, SplitCP
from sosbands.comparison import compare
from sosbands.plotting import plot_comparison

X, y = load_diabetes(return_X_y=True, as_frame=True)
methods = {
    "bands": SoSBandRegressor(RidgeCV()),
    "split": SplitCP(RidgeCV()),
    "locally weighted": LocallyWeightedCP(RidgeCV()),
    "quantile forest": QuantileForestCQR(n_estimators=50),
}
result = compare(methods, X, y, n_repetitions=5)
print(result)

# %%
# A point is one repetition, thin lines join the same repetition.

for metric in ("interval_score", "coverage", "mean_width"):
    plot_comparison(result, metric)
plt.show()

# %%
# Is a difference real? Intervals that hold 0 say that these repetitions cannot tell the
# methods apart.

print(result.differences("interval_score", reference="split"))
