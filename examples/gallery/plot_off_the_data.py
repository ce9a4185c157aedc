"""
Off the data
============

Far from the learning rows nothing is known about the noise. The band functions get one more
sum of squares there, of functions that vanish at the learning rows (``SoSFunction.beyond``),
so that before calibration they are at least as wide as the band of constant width that holds
the same share of the learning rows. ``support`` measures how much the learning rows say about
a place: 1 at the rows, near 0 where they say nothing.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.baselines import SplitCP
from sosbands.datasets import synthetic_case
from sosbands.exceptions import OffDataWarning, SosbandsWarning
from sosbands.plotting import plot_bands
from sosbands.point_models import GaussianProcess

X, y = synthetic_case(1).sample(500, random_state=0)
gap = (X[:, 0] > -0.3) & (X[:, 0] < 0.4)
X, y = X[~gap], y[~gap]  # nothing was measured in the middle
model = SoSBandRegressor(
    GaussianProcess(),
    symmetry_penalty=np.inf,
    lengthscale=0.25,
    base_scale="none",  # bands in units of y,
    noise_features="inputs",  # which look at x alone
    random_state=0,
).fit(X, y)

# %%
# The grey places have a support below 0.5. Whoever predicts there is warned, with a count.

places = [[-0.5], [0.05], [3.0]]  # among the rows, in the gap, far away
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.predict_interval(places)
print([str(warning.message) for warning in caught if warning.category is OffDataWarning])

# %%
# In the grey the width returns to one number, close to that of split conformal prediction
# (dashed): a little more or less, as each is calibrated by itself. The guarantee is about rows
# like the calibration rows, of which none lie there. In the paper's problem, which has no
# constant among the squares and covers every learning row, the bands vanish (dotted), and
# calibration, which takes a number off, leaves nothing.

grid = np.linspace(-2, 2, 400)[:, None]
split = SplitCP(GaussianProcess(), random_state=0).fit(X, y)
paper = clone(model).set_params(
    bands=BandSettings(constant=False),
    learning_coverage=1.0,
    width_penalty=10.0,
    conformal_score="added",
)
paper.fit(X, y)
figure, axes = plt.subplots(
    2, 1, figsize=(5.2, 6.4), height_ratios=(1, 3), sharex=True, layout="constrained"
)
axes[0].plot(grid, model.support(grid), color="#009E73", lw=1.6)
axes[0].axhline(0.5, color="black", lw=1, ls="--")
axes[0].set(ylabel="support", ylim=(0, 1.03))
axes[0].spines[["top", "right"]].set_visible(False)
plot_bands(model, X, y, x_range=(-2, 2), mark_active=False, ax=axes[1])
with warnings.catch_warnings():
    warnings.simplefilter("ignore", SosbandsWarning)
    axes[1].plot(grid, split.predict_interval(grid), color="black", lw=1.1, ls="--")
    axes[1].plot(grid, paper.predict_interval(grid), color="black", lw=1.1, ls=":")
plt.show()

# %%
# The same in numbers. Before calibration the bands reach at least as far, far away, as the
# quantile of the sizes of the residuals that they are learnt from.


def widths(model):
    """Widths of the intervals at the three places."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SosbandsWarning)
        return np.diff(model.predict_interval(places), axis=1)[:, 0].round(2).tolist()


print("far away, before calibration:", round(model.noise_.lower.off_data, 2))
for name, each in (("bands", model), ("split", split), ("paper", paper)):
    print(f"{name:6} among the rows, in the gap, far away: {widths(each)}")

# %%
# What the bands look at decides what is far. Left to itself the estimator may learn bands in
# units of a base scale, which grows where the point model knows little, and let them look at
# the prediction, or at nothing. A place with a familiar prediction is then not far for them:
# its support is 1, and nobody is warned.

automatic = SoSBandRegressor(random_state=0).fit(X, y)
print(automatic.tuning_.sentence)
print(
    "base scale",
    automatic.noise_.view.base_scale,
    "noise features",
    automatic.noise_.view.noise_features,
)
print("support:", automatic.support(places).round(2).tolist(), "widths:", widths(automatic))
