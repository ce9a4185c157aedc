"""
New rows of another kind: covariate shift
=========================================

Calibration rows were collected mostly on the left, new rows come mostly from the right, where
the noise is larger. If the law of y given x is the same, the guarantee can be restored by
weights: the density of new rows over that of calibration rows, up to a constant, given to both
``conformalize`` and ``predict_interval``.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import truncexpon
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor

law = truncexpon(
    b=2, scale=0.5
)  # of x: density proportional to exp(-2x) on [0, 1]; new rows have its mirror image


def draw(n, rng, *, new=False):
    """Rows; the law of y given x is the same for old and new ones."""
    x = law.rvs(n, random_state=rng)
    x = 1 - x if new else x
    return x[:, None], x + (0.1 + 2 * x**2) * rng.standard_normal(n)


def ratio(X):
    """Density of new rows over that of old ones, exp(2x) / exp(-2x), up to a constant."""
    return np.exp(4 * X[:, 0])


# %%
# The bands are symmetric and of constant width here (``lengthscale=inf``, in units that are
# the same everywhere), the hardest case: nothing but the weights can adapt. Fitting happens
# once; calibration costs next to nothing and is repeated with fresh rows.

rng = np.random.RandomState(0)
model = SoSBandRegressor(
    LinearRegression(),
    calibration_size=None,
    lengthscale=np.inf,
    base_scale="none",
    symmetry_penalty=np.inf,
    random_state=0,
).fit(*draw(200, rng))
found = {"without weights": [], "with weights": []}
for _ in range(60):
    X_cal, y_cal = draw(500, rng)
    X_new, y_new = draw(1000, rng, new=True)
    found["without weights"].append(
        model.conformalize(X_cal, y_cal).evaluate(X_new, y_new)["coverage"]
    )
    model.conformalize(X_cal, y_cal, likelihood_ratio=ratio(X_cal))
    found["with weights"].append(
        model.evaluate(X_new, y_new, likelihood_ratio=ratio(X_new))["coverage"]
    )
for name, values in found.items():
    print(f"mean coverage {name:16}{np.mean(values):.3f}")

# %%
# Weighted intervals have the coverage again, and vary more: of 500 calibration rows only a few
# lie where the new ones do.

figures = [plt.figure(figsize=(5.2, 4.0), layout="constrained") for _ in found]
axes = [figure.add_subplot() for figure in figures]
x = np.linspace(0.001, 0.999, 300)
for density, color, name in (
    (law.pdf(x), "#0072B2", "calibration rows"),
    (law.pdf(1 - x), "#D55E00", "new rows"),
):
    axes[0].fill_between(x, density, color=color, alpha=0.3, lw=0)
    axes[0].plot(x, density, color=color, lw=1.4, label=f"density of {name}")
axes[0].plot(
    x, 0.1 + 2 * x**2, color="black", lw=1.4, ls="--", label="standard deviation of the noise"
)
axes[0].set(xlabel="x", ylim=(0, 3.6))
axes[0].legend(loc="upper center", frameon=False, fontsize="small")
axes[1].boxplot(
    list(found.values()),
    tick_labels=list(found),
    widths=0.45,
    medianprops={"color": "black", "lw": 2},
)
axes[1].axhline(0.9, color="#D55E00", lw=1.2, ls="--", label="nominal 90 %")
axes[1].set_ylabel("coverage of new rows, 60 calibrations")
axes[1].legend(loc="lower right", frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# An estimated ratio gives approximate coverage. A classifier that tells new rows from old
# ones, its odds taken as the ratio, is the usual estimate.
