"""
Skewed noise, and the dial between two bands and one
====================================================

The noise of this data set is exponential. Its long tail points down on the left and up on the
right, so an honest interval is short on one side of the prediction and long on the other. One
number, the symmetry penalty, moves the bands continuously from two independent ones (0) to a
shared one (infinity).
"""

import matplotlib.pyplot as plt
import numpy as np

from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.datasets import synthetic_case
from sosbands.metrics import evaluate_intervals
from sosbands.plotting import plot_bands

case = synthetic_case(5)
X, y = case.sample(600, random_state=9)
X_test, y_test = case.sample(5000, random_state=1)

# %%
# Three settings of the dial, the same rows and the same point model each time. The bands look
# at x and should hold 90 % of the learning rows before calibration; how closely they follow
# the residuals, and the score that calibrates them, is left to the data. The dashed line is
# the oracle: the 5 % and 95 % quantiles of the law that the data were drawn from, which no
# method is told.

grid = np.linspace(-1, 1, 200)[:, None]
oracle = case.oracle_interval(grid, confidence_level=0.9)
rows = []
for penalty in (0, 30, np.inf):
    model = SoSBandRegressor(
        SmoothingSplineRegressor(),
        symmetry_penalty=penalty,
        lengthscale=1.0,
        base_scale="none",
        noise_features="inputs",
        learning_coverage=0.9,
        calibration_size=300,
        random_state=0,
    ).fit(X, y)
    ax = plot_bands(model, X_test[:400], y_test[:400], x_range=(-1, 1))
    ax.plot(grid, oracle, color="black", ls="--", lw=1.1)
    ax.set(
        title=f"symmetry penalty {penalty:g}\n{ax.get_title()}".replace("inf", "∞"),
        ylim=(-8, 12),
    )
    rows.append((f"penalty {penalty:3g}", model.evaluate(X_test, y_test)))
plt.show()

# %%
# Calibration makes all three keep the promise of 90 %. What they pay for it differs: the
# interval score counts the width and, twenty times over, by how much is missed; smaller is
# better. A symmetric band is as narrow as the others on average, and misses on the side of the
# long tail.

oracle = case.oracle_interval(X_test, confidence_level=0.9)
rows.append(("oracle     ", evaluate_intervals(y_test, *oracle.T, confidence_level=0.9)))
for name, row in rows:
    print(
        f"{name}: coverage {row['coverage']:.3f}, "
        f"mean width {row['mean_width']:.2f}, interval score {row['interval_score']:.2f}"
    )

# %%
# Left out, the penalty is chosen from the data, as is everything else: see
# :ref:`sphx_glr_auto_examples_plot_tuning_report.py`.
