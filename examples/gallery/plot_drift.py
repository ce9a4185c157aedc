"""
When the world changes: drift, and intervals that follow it
===========================================================

Intervals promise coverage for rows like the calibration rows. Here are five years of daily
demand, one row after another, in which something happens. The series is simulated, so that it
is known when: there are seasons, weeks, a temperature that drives demand, and on day 1000 a
fifth more customers, of which no column tells.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import TimeSeriesSplit

from sosbands import SoSBandRegressor
from sosbands.online import AdaptiveIntervals, monitor
from sosbands.plotting import plot_monitoring

rng = np.random.default_rng(7)
n = 5 * 365
day = np.arange(n)
season = 2 * np.pi * day / 365
table = pd.DataFrame(
    {
        "cosine": np.cos(season),
        "sine": np.sin(season),
        "weekend": (day % 7 >= 5).astype(float),
        "temperature": 12 - 9 * np.cos(season) + 3 * rng.normal(size=n),
    }
)
customers = np.where(day < 1000, 1.0, 1.2)
noise = (3 + 2 * table["weekend"]) * (rng.standard_gamma(2.0, size=n) - 2)  # skewed
demand = customers * (100 - 1.2 * table["temperature"] - 15 * table["weekend"] + noise)

# %%
# Two years are known. With ``TimeSeriesSplit`` every residual is that of a model fitted to
# earlier days, and the last days are held back for calibration: a whole year, because a part
# of it would not be like the seasons to come.

known = 2 * 365
settings = {"base_scale": "none", "noise_features": "inputs", "learning_coverage": 0.9}
settings |= {"lengthscale": 2.0, "width_penalty": 1.0, "conformal_score": "scaled"}
settings |= {"symmetry_penalty": 0, "calibration_size": 365, "random_state": 0}
model = SoSBandRegressor(RidgeCV(), cv=TimeSeriesSplit(4), **settings)
model.fit(table[:known], demand[:known])
print(f"calibrated on days {model.calibration_rows_[0]} to {model.calibration_rows_[-1]}")

# %%
# The other days come as a stream. ``monitor`` looks at them in their order: how many are in
# their interval, how wide these are, and whether a martingale that bets against "nothing has
# changed" becomes rich. Adaptive intervals, which ask for a higher level after every miss, are
# drawn beside those of the model.

X_stream, y_stream = table[known:], demand[known:]
found = monitor(model, X_stream, y_stream)
print(found.words())
plot_monitoring(found)
plt.show()

# %%
# What to do about it, a year later. Calibration on the days since the change widens the
# intervals around a point model that is now wrong; a fit to these days learns the new level,
# and its intervals are narrower.

start, later = known + found.began, known + found.began + 365
recalibrated = model.update(table[start:later], demand[start:later], window=365)
again = SoSBandRegressor(RidgeCV(), **settings | {"calibration_size": 0.5})
again.fit(table[start:later], demand[start:later])
for name, each in (("recalibrated", recalibrated), ("fitted again", again)):
    row = each.evaluate(table[later:], demand[later:])
    print(f"{name}: coverage {row['coverage']:.2f}, mean width {row['mean_width']:.0f}")

# %%
# Before there are enough new days for either, the intervals can follow: nothing has to be
# assumed about the days for the share of misses in the long run.

model.conformalize(table[known - 365 : known], demand[known - 365 : known])
adaptive = AdaptiveIntervals(model)
seen = adaptive.follow(X_stream, y_stream)
width = np.median(seen.ends[found.alarm :, 1] - seen.ends[found.alarm :, 0])
print(f"adaptive: coverage {adaptive.coverage_:.2f}, median width since the alarm {width:.0f}")
