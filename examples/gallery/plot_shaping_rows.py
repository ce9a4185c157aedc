"""
The rows that shape the bands
=============================

With ``learning_coverage=1``, as in the paper, the bands must cover every learning residual,
and at the optimum they touch only a few of them. These rows, those with a positive multiplier,
decide the shape; the others have a part in the mean width only. They are the first rows to
look at when a band looks odd.
"""

import matplotlib.pyplot as plt
import numpy as np

from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.datasets import synthetic_case
from sosbands.plotting import plot_active_rows

X, y = synthetic_case(1).sample(200, random_state=2)
y[np.argmin(np.abs(X[:, 0]))] += (
    6  # one wild value in the middle, as a typing error would make it
)

# %%
# The triangles are the shaping rows, with their numbers in ``X``. One of them makes a bump
# that no other row asks for. ``outlier_fraction=0.02`` leaves out the two per cent of learning
# rows with the largest residuals when the bands are learnt; the point model and calibration
# still see every row, so the guarantee is untouched.

for fraction in (0.0, 0.02):
    model = SoSBandRegressor(
        SmoothingSplineRegressor(),
        symmetry_penalty=0,
        lengthscale=0.5,
        learning_coverage=1.0,
        width_penalty=10.0,
        base_scale="none",
        noise_features="inputs",
        conformal_score="added",
        bands=BandSettings(outlier_fraction=fraction),
        calibration_size=80,
        random_state=0,
    ).fit(X, y)
    ax = plot_active_rows(model, X, y)
    ax.set(title=f"outlier_fraction={fraction:g}", ylim=(-6, 9))
plt.show()

# %%
# The rows are attributes of the model, and their positions are those of the rows given to
# ``fit``.

for side, rows in (("lower", model.noise_.active_lower), ("upper", model.noise_.active_upper)):
    print(f"{side} band: rows {rows.tolist()}")
