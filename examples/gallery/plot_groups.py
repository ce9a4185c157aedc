"""
The same promise for every group
================================

A guarantee on average may be paid for by some: if a method is right for 97 % of one group and
75 % of another, the average can still be 90 %. With ``groups`` each group is calibrated by
itself and gets its own promise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.plotting import plot_bands

# %%
# Two instruments measure the same thing; a third of the values come from the one that scatters
# more. Which one it was is not among the features, so no band can know it. Infinite
# lengthscales give bands of constant width in units that are the same everywhere: all that
# differs between the two models is the calibration.


def measure(n, seed):
    """Rows, measured values, and which instrument it was."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 1))
    instrument = np.where(rng.random(n) < 1 / 3, "old", "new")
    scale = np.where(instrument == "old", 1.0, 0.4)
    return X, 3 * X[:, 0] + scale * rng.standard_normal(n), instrument


X, y, instrument = measure(2000, seed=0)
X_test, y_test, instrument_test = measure(6000, seed=1)
settings = {
    "random_state": 0,
    "symmetry_penalty": np.inf,
    "lengthscale": np.inf,
    "base_scale": "none",
    "calibration_size": 1700,
}
common = SoSBandRegressor(LinearRegression(), **settings).fit(X, y)
grouped = SoSBandRegressor(LinearRegression(), **settings).fit(X, y, groups=instrument)

# %%
# Coverage of new rows, with two standard errors. The average is right both times.


def coverage(model, **groups):
    """Whether each test row is inside its interval."""
    lower, upper = model.predict_interval(X_test, **groups).T
    return (lower <= y_test) & (y_test <= upper)


figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
inside = {
    "common quantile": coverage(common),
    "one for each group": coverage(grouped, groups=instrument_test),
}
for shift, (label, covered) in zip((-0.17, 0.17), inside.items(), strict=True):
    parts = [covered[instrument_test == "new"], covered[instrument_test == "old"], covered]
    heights = [part.mean() for part in parts]
    errors = [2 * part.std() / np.sqrt(len(part)) for part in parts]
    color = "#0072B2" if shift < 0 else "#E69F00"
    bars = ax.bar(np.arange(3) + shift, heights, 0.32, yerr=errors, color=color, label=label)
    ax.bar_label(bars, fmt="%.2f", padding=3, fontsize="small")
ax.axhline(0.9, color="black", lw=1, ls="--")
ax.set(ylim=(0, 1.12), ylabel="coverage", title="coverage, nominal 90 %")
ax.set_xticks(range(3), ["new\ninstrument", "old\ninstrument", "all rows"])
ax.spines[["top", "right"]].set_visible(False)
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)

# %%
# The intervals of each instrument, calibrated by its own rows.

for name in ("old", "new"):
    some = np.flatnonzero(instrument_test == name)[:300]
    ax = plot_bands(grouped, X_test[some], y_test[some], groups=name)
    ax.set(title=f"{name} instrument\n{ax.get_title()}", ylim=(-4, 7))
plt.show()

# %%
# The number of calibration rows counts for each group by itself: a group with fewer than nine
# of them gets infinite intervals at 90 %, and a warning that names it.
