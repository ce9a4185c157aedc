"""The same bits with one and with two BLAS threads, in processes of their own."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib, json, sys, warnings
import numpy as np
from threadpoolctl import threadpool_info
from sosbands import GaussianProcess, SoSBandRegressor, learn_band_path, learn_bands, metrics, stats
from sosbands.bands import BandSettings
from sosbands.baselines import make_method
from sosbands.point_models import ModelBlend
from sklearn.linear_model import LinearRegression, RidgeCV
from sosbands.regressors import PAPER_SETTINGS
from sosbands.stats.tests import feature_independence_test

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n = 640
X = rng.uniform(-1, 1, (n, 3))
y = np.sin(3 * X[:, 0]) + (0.2 + np.abs(X[:, 2])) * rng.exponential(size=n)
r, new = y - y.mean(), X[:300] + 0.01
ROUGH = BandSettings(tol=1e-2, rank=60)
FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "bands": ROUGH, "random_state": 0}
found = {}

def put(name, *values):
    found[name] = hashlib.sha256(b"".join(np.asarray(v, dtype=float).tobytes() for v in values)).hexdigest()

def intervals(name, model):
    model.fit(X, y)
    put(name, model.predict_interval(new), model.predict(new), model.scores_, [*model.evaluate(X, y).values()])

for name, settings in {
    "subspace": {"rank": 120},
    "newton": {"solver": "newton", "rank": 40},
    "normalized": {"normalize": True, "rank": 60},
}.items():
    bands = learn_bands(X, r, tol=1e-2, **settings)
    put(name, bands.values_lower, bands.upper(new), bands.lower.operator, [bands.gap])
put("path", *(bands.upper(new) for bands in learn_band_path(X, r, [0.0, 1.0, np.inf], rank=40, tol=1e-2)))
tests = [
    stats.independence_test([X[:, 2]], [r], random_state=0, n_permutations=19),
    stats.sign_flip_test(X, r, 0.5, random_state=0, n_flips=99),
    feature_independence_test(X, r, [0.5, 1.0], random_state=0, n_permutations=19),
]
put("tests", *([test.statistic, test.p_value] for test in tests))
long = rng.standard_normal((2, 30_000))
put("dependence", [stats.hsic(*long), stats.distance_correlation(*long)])
put("metrics", [*metrics.evaluate_intervals(y, y - 1, y + np.abs(r), confidence_level=0.9, X=X).values()])
blend = ModelBlend([RidgeCV(), GaussianProcess(max_rows=200)], cv=2, random_state=0).fit(X, y)
put("blend", *blend.predict(new, return_std=True), blend.predict(new))
intervals("estimator", SoSBandRegressor(GaussianProcess(max_iter=3), **FAST))
intervals("gp", make_method("gp", random_state=0, max_iter=3))
blas = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
print(json.dumps({"threads": sorted(blas), "found": found}))
"""


def digests(threads):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_and_two_threads_give_the_same_bits():
    one, two = digests(1), digests(2)
    if two["threads"] != [2]:
        pytest.skip("the BLAS library in use has no threads")
    assert one["threads"] == [1]
    assert [name for name, digest in one["found"].items() if two["found"][name] != digest] == []
