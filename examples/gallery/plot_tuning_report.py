"""
Reading the tuning report
=========================

``SoSBandRegressor()`` chooses from the learning rows all that shapes its bands, and keeps a
record of how it came to the decision. This page reads that record.
"""

import matplotlib.pyplot as plt

from sosbands import SoSBandRegressor
from sosbands.datasets import synthetic_case
from sosbands.plotting import plot_bands, plot_tuning
from sosbands.point_models import GaussianProcess
from sosbands.tuning import Rules, tune

case = synthetic_case(5)
X, y = case.sample(200, random_state=0)
model = SoSBandRegressor(random_state=0).fit(X, y)

# %%
# One sentence, then the test of symmetry: only if the residuals are skewed are asymmetric
# bands tried. Then, for each setting, the value that was chosen and by how much the best
# candidate with another one is worse, and the size of the search.

print(model.tuning_)

# %%
# Every candidate with its value. The criterion is minus the mean logarithm of interval
# scores of held-out rows: larger is better, and a difference of 0.01 is one per cent.

candidates = model.tuning_.to_frame().sort_values("criterion", ascending=False)
print(candidates.head(6).to_string(index=False))

# %%
# For each value of each setting the best candidate with it, and the intervals that the
# chosen one (the stars) gives to new rows.

plot_tuning(model.tuning_)
# sphinx_gallery_thumbnail_number = 2
plot_bands(model, *case.sample(300, random_state=1))
plt.show()

# %%
# The paper chooses two of these settings only, lengthscale and symmetry penalty, by HSIC
# and by a Kruskal-Wallis test on bootstrap replicates. That search can be had without the
# estimator too, on residuals of your own: here leave-one-out ones of a Gaussian process.

process = GaussianProcess().fit(X[:100], y[:100])
rules = Rules(criterion="hsic", symmetry_test="kruskal-wallis")
report = tune(X[:100], process.leave_one_out_residuals(), rules=rules, random_state=0)
print(report)
