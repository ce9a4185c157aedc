"""
One quantile for both ends, or one for each
===========================================

Symmetric calibration promises that a part of the new rows are inside, and nothing about the
two sides. Asymmetric calibration calibrates each end by itself: it promises how much is missed
below and how much above, and you may share the misses as your problem asks. Being too low and
being too high seldom cost the same.
"""

import matplotlib.pyplot as plt
import numpy as np

from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.datasets import synthetic_case
from sosbands.plotting import plot_bands

case = synthetic_case(4)  # above the sine the noise comes and goes, below it is small
X, y = case.sample(1200, random_state=0)
X_test, y_test = case.sample(3000, random_state=1)
model = SoSBandRegressor(
    SmoothingSplineRegressor(),
    confidence_level=0.8,
    calibration="asymmetric",
    symmetry_penalty=0,
    lengthscale=0.5,
    calibration_size=800,
    random_state=0,
).fit(X, y)

# %%
# ``lower_share`` is the part of the misses, 20 % of the rows here, that may fall below. 0
# gives one-sided intervals: no lower end is finite, and the upper end gets all of the 20 %.

shares = (0.9, 0.5, 0.1)
for share in shares:
    ax = plot_bands(model, X_test[:400], y_test[:400], lower_share=share, x_range=(0, 12.5))
    ax.set_title(f"lower_share={share}\n{ax.get_title()}")
plt.show()

# %%
# What is missed on each side, of 3000 new rows, against what is promised.

print("lower_share   missed below (promised)   missed above (promised)")
for share in (*shares, 0.0):
    lower, upper = model.predict_interval(X_test, lower_share=share).T
    below, above = np.mean(y_test < lower), np.mean(y_test > upper)
    promised = 0.2 * share, 0.2 * (1 - share)
    print(
        f"{share:11}   {below:12.3f} ({promised[0]:.3f})   {above:15.3f} ({promised[1]:.3f})"
    )

# %%
# Both kinds of score are kept, so the same fit gives symmetric intervals too. Each end of an
# asymmetric one has only its share of the misses to spend, so it needs more calibration rows:
# 19 instead of 9 for a level of 90 %, if the misses are shared equally.

model.set_params(calibration="symmetric")
print("one quantile:", model.quantile())
model.set_params(calibration="asymmetric")
print("one for each end:", model.quantile())
