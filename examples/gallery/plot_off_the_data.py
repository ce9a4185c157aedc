"""
Off the data
============

Far from the learning rows the band functions tend to a constant, so intervals have a typical
width exactly where nothing is known. ``support`` measures how much the learning rows say about
a place: 1 at the rows, near 0 where they say nothing.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from sosbands import SoSBandRegressor
from sosbands.datasets import synthetic_case
from sosbands.exceptions import OffDataWarning
from sosbands.plotting import plot_bands

X, y = synthetic_case(1).sample(500, random_state=0)
gap = (X[:, 0] > -0.3) & (X[:, 0] < 0.4)
X, y = X[~gap], y[~gap]  # nothing was measured in the middle
model = SoSBandRegressor(symmetry_penalty=np.inf, lengthscale=0.25, random_state=0).fit(X, y)

# %%
# The grey places have a support below 0.5. Whoever predicts there is warned, with a count.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.predict_interval([[-0.9], [0.05], [3.0]])
print([str(warning.message) for warning in caught if warning.category is OffDataWarning])

# %%
# In the grey the prediction returns to the mean and the width to one number. The guarantee is
# about rows like the calibration rows, of which none lie there. Without the constant among the
# squares, as in the paper, the bands vanish there (dotted).

grid = np.linspace(-2, 2, 400)[:, None]
figure, axes = plt.subplots(
    2, 1, figsize=(9, 6.6), height_ratios=(1, 3), sharex=True, layout="constrained"
)
axes[0].plot(grid, model.support(grid), color="#009E73", lw=1.6)
axes[0].axhline(0.5, color="black", lw=1, ls="--")
axes[0].set(ylabel="support", ylim=(0, 1.03))
axes[0].spines[["top", "right"]].set_visible(False)
plot_bands(model, X, y, x_range=(-2, 2), mark_active=False, ax=axes[1])
paper = SoSBandRegressor(**{**model.get_params(), "constant": False}).fit(X, y)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    axes[1].plot(grid, paper.predict_interval(grid), color="black", lw=1.1, ls=":")
plt.show()
