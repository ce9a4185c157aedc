"""
Around any model: a forest in a pipeline, with categories and missing values
============================================================================

The point model sees the rows as you give them. The kernel of the bands needs numbers, and gets
them from ``preprocessor``: any transformer. Here both share the same one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sosbands import SoSBandRegressor

# %%
# Invented rents. In the old town prices scatter upwards, in the suburbs hardly at all, and
# some ages are not known.

rng = np.random.default_rng(0)
n = 1000
table = pd.DataFrame(
    {
        "area": rng.uniform(20, 120, n),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(0, 80, n)),
        "quarter": rng.choice(["old town", "centre", "suburb"], n),
    }
)
spread = table["quarter"].map({"old town": 5.0, "centre": 2.5, "suburb": 0.8}).to_numpy()
rent = (
    200
    + 9 * table["area"].to_numpy()
    + 0.5 * spread * table["area"].to_numpy() * rng.exponential(size=n)
)
new, old = table.iloc[:300], table.iloc[300:]

# %%
# A forest nearly interpolates the rows that it has seen, so its own residuals are too small to
# learn bands from. The estimator knows this: it takes out-of-fold residuals, and says so.

numbers = make_pipeline(SimpleImputer(), StandardScaler())
columns = ColumnTransformer(
    [("numbers", numbers, ["area", "age"]), ("words", OneHotEncoder(), ["quarter"])]
)
forest = RandomForestRegressor(n_estimators=50, min_samples_leaf=8, random_state=0)
model = SoSBandRegressor(
    make_pipeline(columns, forest),
    preprocessor=columns,
    symmetry_penalty=0,
    lengthscale="median",
    random_state=0,
)
model.fit(old, rent[300:])
print(model.residual_rule_, "residuals")
print(
    {
        name: round(value, 3)
        for name, value in model.evaluate(new, rent[:300]).items()
        if "coverage" in name
    }
)

# %%
# Intervals of a flat of average age in each quarter: wide and skewed where rents scatter
# upwards.

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), sharey=True, layout="constrained")
area = np.linspace(20, 120, 150)
for ax, quarter in zip(axes, ("suburb", "centre", "old town"), strict=True):
    flats = pd.DataFrame({"area": area, "age": np.nan, "quarter": quarter})
    lower, upper = model.predict_interval(flats).T
    seen = new["quarter"] == quarter
    ax.fill_between(
        area, lower, upper, color="#0072B2", alpha=0.25, lw=0, label="90 % interval"
    )
    ax.plot(area, model.predict(flats), color="black", lw=1.5, label="forest")
    ax.scatter(new["area"][seen], rent[:300][seen], s=11, color="#6E6E6E", label="new rows")
    ax.set(title=quarter, xlabel="area in m²")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="rent", ylim=(0, 2400))
axes[0].legend(loc="upper left", frameon=False)
plt.show()
