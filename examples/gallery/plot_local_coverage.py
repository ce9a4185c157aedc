"""
Right on average, wrong in places
=================================

Coverage is promised on average over new rows. Intervals of constant width keep that promise
and still miss too much where the noise is large; bands that follow the noise spread the misses
more evenly. This page measures the difference.
"""

import matplotlib.pyplot as plt

from sosbands import SoSBandRegressor
from sosbands.baselines import SplitCP
from sosbands.datasets import synthetic_case
from sosbands.metrics import coverage_gaps
from sosbands.plotting import plot_bands, plot_local_coverage

case = synthetic_case(1)  # normal noise with standard deviation sqrt(0.1 + 2 x²)
X, y = case.sample(700, random_state=0)
X_test, y_test = case.sample(2000, random_state=1)
models = {
    "constant width (SplitCP)": SplitCP(calibration_size=500, random_state=0).fit(X, y),
    "bands (SoSBandRegressor)": SoSBandRegressor(calibration_size=500, random_state=0).fit(
        X, y
    ),
}

# %%
# The intervals, and the coverage in bins along x with 95 % error bars. The black line is the
# nominal 90 %.

for draw in (plot_bands, plot_local_coverage):
    for name, model in models.items():
        n = 400 if draw is plot_bands else len(y_test)
        ax = draw(model, X_test[:n], y_test[:n])
        ax.set_title(f"{name}\n{ax.get_title()}".strip())
        ax.set_ylim((-5, 5) if draw is plot_bands else (0.4, 1.02))
plt.show()

# %%
# The same in numbers. The worst-set coverage is the smallest coverage among ten sets of 100
# neighbours. The coverage gap is the mean distance of local coverage from 90 %; it needs many
# observations at the same place, which only simulated data have.

Y_conditional = case.sample_conditional(X_test[:200], 1000, random_state=2)
for name, model in models.items():
    row = model.evaluate(X_test, y_test)
    gaps = coverage_gaps(
        *model.predict_interval(X_test[:200]).T, Y_conditional, confidence_level=0.9
    )
    print(
        f"{name}: coverage {row['coverage']:.3f}, worst set {row['worst_set_coverage']:.2f}, "
        f"coverage gap {gaps.marginal:.3f}, mean width {row['mean_width']:.2f}"
    )
