"""
Save once, predict at every level
=================================

A fitted model is saved to one file that holds arrays and names but no code. Whoever loads it
may ask for any confidence level: the level is chosen when intervals are predicted, not when
the model is fitted.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sosbands
from sosbands import SoSBandRegressor
from sosbands.datasets import synthetic_case

X, y = synthetic_case(6).sample(700, random_state=0)
model = SoSBandRegressor(
    symmetry_penalty=np.inf, lengthscale=4.0, calibration_size=500, random_state=0
).fit(X, y)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.sosbands"
    model.save(path)
    loaded = sosbands.load(path)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")

grid = np.linspace(X.min(), X.max(), 300)[:, None]
print(
    "the same bits:",
    np.array_equal(model.predict_interval(grid), loaded.predict_interval(grid)),
)

# %%
# A list of levels gives an array of shape (n, 2, k). Intervals are nested: a higher level is
# never narrower.

levels = [0.5, 0.8, 0.9, 0.95]
intervals = loaded.predict_interval(grid, levels)
print(intervals.shape)

figure, ax = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
for k, color in zip((3, 2, 1, 0), ("#DCEBF5", "#B5D5EA", "#86BADB", "#4E9AC9"), strict=True):
    ax.fill_between(
        grid[:, 0], *intervals[:, :, k].T, color=color, lw=0, label=f"{levels[k]:.0%} interval"
    )
ax.plot(grid[:, 0], loaded.predict(grid), color="black", lw=1.5, label="prediction")
ax.scatter(X[:300, 0], y[:300], s=9, color="#6E6E6E", label="300 of the rows")
ax.set(xlabel="x", ylabel="y")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
plt.show()
