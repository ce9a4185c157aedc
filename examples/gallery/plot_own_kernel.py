"""
A kernel of your own: noise that repeats
========================================

The kernel says which places are alike. If noise depends on the time of day, places 24 hours
apart are alike, and a periodic kernel carries what was learnt on one day to the next. Any
kernel of scikit-learn can be used, or a function.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import ExpSineSquared
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings

# %%
# Hours and a load with peaks that are hard to foresee around noon. Four days to learn and
# calibrate, one to predict.


def load_at(hours, rng):
    """A daily wave with skewed noise, largest at noon."""
    size = 0.15 + np.sin(np.pi * (hours % 24) / 24) ** 4
    return 3 - np.cos(2 * np.pi * hours / 24) + size * rng.gamma(2.0, 0.5, len(hours))


def daily(hours):
    """Columns of which a linear model makes any daily wave of two frequencies."""
    angle = 2 * np.pi * np.asarray(hours) / 24
    return np.column_stack(
        [np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)]
    )


rng = np.random.default_rng(0)
hours = np.sort(rng.uniform(0, 96, 600))[:, None]
load = load_at(hours[:, 0], rng)
model = SoSBandRegressor(
    make_pipeline(FunctionTransformer(daily), LinearRegression()),
    bands=BandSettings(kernel=ExpSineSquared(length_scale=1.0, periodicity=24.0)),
    preprocessor=None,  # the kernel is to see hours, not standardised ones
    lengthscale="median",  # stands for that of the kernel object
    symmetry_penalty=0,
    random_state=0,
).fit(hours, load)

# %%
# The fifth day lies outside of the learning rows and still has full support: the kernel sees
# the same time of day.

tomorrow = np.linspace(96, 120, 200)[:, None]
print(f"smallest support on the fifth day: {model.support(tomorrow).min():.3f}")
later = np.sort(rng.uniform(96, 120, 300))[:, None]
load_later = load_at(later[:, 0], rng)
print(f"coverage on the fifth day: {model.evaluate(later, load_later)['coverage']:.3f}")

figure, ax = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
grid = np.linspace(0, 120, 800)[:, None]
lower, upper = model.predict_interval(grid).T
ax.fill_between(
    grid[:, 0], lower, upper, color="#0072B2", alpha=0.25, lw=0, label="90 % interval"
)
ax.plot(grid[:, 0], model.predict(grid), color="black", lw=1.4, label="prediction")
ax.scatter(hours, load, s=8, color="#6E6E6E", label="rows given to fit")
ax.scatter(later[::2], load_later[::2], s=8, color="#D55E00", label="new rows")
ax.axvline(96, color="black", lw=1, ls=":")
ax.set(xlabel="hour", ylabel="load", xticks=range(0, 121, 24), xlim=(0, 120))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
plt.show()
