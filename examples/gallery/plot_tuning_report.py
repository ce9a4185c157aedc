"""
Reading the tuning report
=========================

``SoSBandRegressor()`` chooses its lengthscale and its symmetry penalty from the learning rows
and keeps a record of how it came to the decision. This page reads that record.
"""

import matplotlib.pyplot as plt

from sosbands import SoSBandRegressor
from sosbands.datasets import synthetic_case
from sosbands.plotting import plot_bands, plot_replicates, plot_tuning
from sosbands.tuning import Rules, tune

X, y = synthetic_case(5).sample(200, random_state=0)
model = SoSBandRegressor(random_state=0).fit(X, y)

# %%
# One sentence, then the tests and the size of the search. The first test asks whether the
# sizes of the residuals depend on the features; if not, bands of constant width are taken. The
# second asks whether the residuals are skewed; if not, only the symmetric limit is searched.

print(model.tuning_)

# %%
# Every candidate with its value. The criterion is minus the interval score of held-out rows:
# larger is better.

print(
    model.tuning_.to_frame()
    .sort_values("criterion", ascending=False)
    .head(6)
    .to_string(index=False)
)

# %%
# A map of the candidates, and the intervals that the chosen one (the star) gives.

figure, axes = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
plot_tuning(model.tuning_, axes[0])
plot_bands(model, X, y, ax=axes[1])
plt.show()

# %%
# The search can be had without the estimator too, on residuals of your own (here those that
# the bands were learnt from), and by other rules. The lengthscale is given, and the penalty is
# decided as in the paper: by HSIC, and the Kruskal-Wallis test on bootstrap replicates.

points, residuals = X[model.learning_rows_], model.estimator_.leave_one_out_residuals()
rules = Rules(criterion="hsic", symmetry_test="kruskal-wallis")
report = tune(points, residuals, lengthscale=model.lengthscale_, rules=rules, random_state=0)
print(report)
plot_replicates(report)
plt.show()
