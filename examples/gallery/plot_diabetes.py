"""
Diabetes: everything automatic
==============================

Ten features, a progression score after one year, and no setting to make: the point model is a
blend of several, the data choose the unit of the bands, what they look at, how smooth and how
symmetric they are, and a quarter of the rows calibrates.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from sosbands import SoSBandRegressor
from sosbands.plotting import plot_bands

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
model = SoSBandRegressor(random_state=0).fit(X, y)

# %%
# The summary says what is promised, how wide that is, what shapes it and what to watch; with
# its details also what was chosen and why, and how close to the optimum the bands are.

print(model.summary(detail=True))

# %%
# The bars are test rows, sorted by prediction; rows outside of their interval are crosses.
# Columns keep their names, so a curve along one of them can be asked for by name; the other
# features stay at their medians, and rows that are near this slice are drawn with it.

plot_bands(model, X_test, y_test)
plot_bands(model, X_test, y_test, feature="bmi")
plt.show()

# %%
# Any level comes from the same fit.

for level in (0.8, 0.9, 0.95):
    row = model.evaluate(X_test, y_test, level)
    print(f"level {level}: coverage {row['coverage']:.3f}, mean width {row['mean_width']:.1f}")
