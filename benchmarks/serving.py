"""Export many random models of every kind and compare both kinds of file with `predict_interval`; then start cold.

Rows are stored as they finish, and a second run continues where the first stopped:

    python -m benchmarks.serving --count 1000 --jobs 2
    python -m benchmarks.serving --cold                 # size, cold start and seconds per row of two models
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import BayesianRidge, Lasso, LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.datasets import house_prices
from sosbands.exceptions import SosbandsWarning
from sosbands.point_models import GaussianProcess, ModelBlend
from sosbands.serving import export_numpy, export_onnx, load_scorer
from sosbands.serving.build import program_of
from sosbands.serving.export import disagreement, inputs_of, numpy_bytes, onnx_bytes, onnx_session

FIELDS = ["seed", "n", "d", "model", "settings", "onnx", "numpy", "onnx_bytes", "numpy_bytes", "seconds"]
NEW_ROWS = 200
LARGER = 600  # further rows of every twentieth model: of more than 256 landmarks bands are computed another way
MODELS = {
    "process": lambda seed: GaussianProcess(),  # noqa: ARG005
    "forest": lambda seed: RandomForestRegressor(15, min_samples_leaf=2, random_state=seed),
    "extra": lambda seed: ExtraTreesRegressor(15, min_samples_leaf=2, random_state=seed),
    "tree": lambda seed: DecisionTreeRegressor(min_samples_leaf=5, random_state=seed),
    "ridge": lambda seed: make_pipeline(StandardScaler(), Ridge()),  # noqa: ARG005
    "lasso": lambda seed: make_pipeline(MinMaxScaler(), Lasso(0.01)),  # noqa: ARG005
    "linear": lambda seed: LinearRegression(),  # noqa: ARG005
    "boosting": lambda seed: GradientBoostingRegressor(n_estimators=20, random_state=seed),
    "histogram": lambda seed: HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5, random_state=seed),
    "blend": lambda seed: ModelBlend(
        [GaussianProcess(), *(MODELS[name](seed) for name in ("forest", "ridge", "histogram"))], cv=3, random_state=seed
    ),
    "neighbours": lambda seed: KNeighborsRegressor(),  # noqa: ARG005
    "bayes": lambda seed: BayesianRidge(),  # noqa: ARG005
}
WITH_SPREAD = ("process", "forest", "extra", "blend", "bayes")  # which may be the base scale
OWN_SPREAD = ("bayes",)  # whose standard deviation nothing converts, so that it is an input


def random_model(seed: int) -> tuple[SoSBandRegressor, np.ndarray, np.ndarray, dict]:
    """An unfitted model, rows, targets, and what was drawn."""
    rng = np.random.default_rng([11, seed])
    n, d = int(np.exp(rng.uniform(np.log(30), np.log(250)))), int(rng.integers(1, 7))
    n += LARGER if seed % 20 == 0 else 0
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-3, 3, d) + rng.uniform(-3, 3, d)
    U = (X - X.mean(axis=0)) / X.std(axis=0)
    noise = [rng.standard_normal(n), rng.exponential(size=n) - 1, rng.standard_t(3, size=n)][rng.integers(3)]
    y = (np.sin(2 * U[:, 0]) + U[:, -1] + (0.2 + np.abs(U[:, 0])) * noise) * 10 ** rng.uniform(-4, 4)
    y += 10 ** rng.uniform(-2, 4) * rng.choice([0, 1]) * y.std()
    name = str(rng.choice(list(MODELS)))
    parts = [str(rng.choice(["inputs", "none"])), str(rng.choice(["prediction", ""])), str(rng.choice(["scale", ""]))]
    features = "+".join(part for part in parts if part not in ("", "none")) or "inputs"
    kernel = str(rng.choice(["matern52", "matern32", "matern12", "gaussian"]))
    ell = float(rng.choice([0.3, 1.0, 3.0, 10.0, np.inf]))
    penalty = [0.0, np.inf, float(10 ** rng.uniform(-2, 2))][rng.integers(3)]
    settings = {
        "calibration": str(rng.choice(["symmetric", "asymmetric"])),
        "conformal_score": str(rng.choice(["added", "scaled"])),
        "base_scale": str(rng.choice(["none", "forest", "model", "both"][: 4 if name in WITH_SPREAD else 2])),
        "noise_features": features,
        "symmetry_penalty": penalty,
        "lengthscale": {"lower": ell, "upper": 2 * ell} if _apart(rng, features, penalty, ell) else ell,
        "kernel": kernel,
        "width_penalty": float(rng.choice([0.0, 1.0, 10.0])),
        "learning_coverage": float(rng.choice([0.8, 0.9, 1.0])),
        "constant": bool(rng.random() < 0.7),
        "rank": ["auto", 10, "exact"][rng.integers(3)],
        "preprocessor": [None, "auto", "auto"][rng.integers(3)],
        "calibration_size": [0.5, 12][rng.choice(2, p=[0.85, 0.15])],
    }
    if not settings["constant"] and settings["learning_coverage"] == 1:
        settings["learning_coverage"] = 0.9  # without a constant few features may reach no row far away
    if kernel == "gaussian" and not np.isfinite(ell):
        settings["lengthscale"] = 1.0
    numerics = ("kernel", "constant", "rank")
    given = {key: value for key, value in settings.items() if key not in numerics}
    given["bands"] = BandSettings(**{key: settings[key] for key in numerics})
    return SoSBandRegressor(MODELS[name](seed), random_state=seed, cv=3, **given), X, y, {"model": name, **settings}


def _apart(rng: np.random.Generator, features: str, penalty: float, ell: float) -> bool:
    return bool(rng.random() < 0.25 and features == "inputs" and np.isfinite(penalty) and np.isfinite(ell))


def new_rows(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows like those of X, some of them the same and some far away."""
    drawn = X[rng.integers(len(X), size=NEW_ROWS)] + 0.3 * X.std(axis=0) * rng.standard_normal((NEW_ROWS, X.shape[1]))
    far = X.mean(axis=0) + 10 * X.std(axis=0) * rng.standard_normal((20, X.shape[1]))
    return np.vstack([drawn, X[:20], far])


def score_one(seed: int) -> dict:
    """One model: the largest disagreement of both files on new rows."""
    clock = perf_counter()
    model, X, y, drawn = random_model(seed)
    rng = np.random.default_rng([12, seed])
    levels = sorted(rng.choice([0.5, 0.8, 0.9, 0.95, 0.99], size=int(rng.integers(1, 4)), replace=False).tolist())
    groups = {"groups": rng.integers(0, 2, len(X))} if rng.random() < 0.15 and len(X) > 60 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SosbandsWarning)
        model.fit(X, y, **groups)
    bands_only = drawn["model"] in OWN_SPREAD and "model" in model.noise_.view.scales
    rows = new_rows(X, rng)
    program = program_of(model, levels, bands_only=bands_only)
    given = inputs_of(program, model, rows)
    graph = onnx_bytes(program)
    names = list(program.outputs)
    found = dict(zip(names, onnx_session(graph).run(names, given), strict=True))
    row = {"seed": seed, "n": len(X), "d": X.shape[1], "model": drawn["model"], "settings": str(drawn)}
    row |= {"onnx": disagreement(program, model, rows, found), "onnx_bytes": len(graph)}
    row |= {"numpy": "", "numpy_bytes": ""}
    if not program.foreign:
        archive = numpy_bytes(program, many=True)
        scored = load_scorer(io.BytesIO(archive))(given.pop("X"), **given)
        row |= {"numpy": disagreement(program, model, rows, scored), "numpy_bytes": len(archive)}
    return {**row, "seconds": perf_counter() - clock}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cold", action="store_true", help="size, cold start and speed instead")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/output/serving.csv"))
    args = parser.parse_args()
    if args.cold:
        cold()
        return
    args.output.parent.mkdir(parents=True, exist_ok=True)
    rows = list(csv.DictReader(args.output.open())) if args.output.exists() else []
    missing = sorted(set(range(args.count)) - {int(row["seed"]) for row in rows})
    with args.output.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        for row in Parallel(args.jobs, return_as="generator_unordered")(delayed(score_one)(seed) for seed in missing):
            writer.writerow(row)
            file.flush()
            rows.append(row)
            if len(rows) % 50 == 0:
                print(f"{len(rows)} of {args.count}", flush=True)
    report([row for row in rows if int(row["seed"]) < args.count])


def report(rows: list[dict]) -> None:
    for kind, limit in (("onnx", 1e-6), ("numpy", 1e-8)):
        off = np.array([float(row[kind]) for row in rows if row[kind] != ""])
        quantiles = ", ".join(f"{np.quantile(off, q):.1e}" for q in (0.5, 0.99, 1.0))
        print(f"{kind}: {len(off)} models, {np.sum(off <= limit)} within {limit:g} of the width")
        print(f"  median, 99 % and worst disagreement: {quantiles}")
        for row in rows:
            if row[kind] != "" and not float(row[kind]) <= limit:
                print("  FAILED:", row)


START = {
    "onnx": """
import numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads, options.graph_optimization_level = 1, ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession({path!r}, options, providers=["CPUExecutionProvider"])
session.run(None, {{"X": np.array({row!r})}})
""",
    "npz": """
import numpy as np
from sosbands.serving import load_scorer
load_scorer({path!r})(np.array({row!r}))
""",
    "sosbands": """
import numpy as np, sosbands
sosbands.load({path!r}).predict_interval(np.array({row!r}))
""",
}


def cold(repeats: int = 7) -> None:
    """Bytes, seconds of a new process up to the first interval, and microseconds per row, of two models."""
    print(f"import numpy alone: {_cold_seconds('import numpy', repeats)[1]:.3f} s of processor")
    table, prices = house_prices(1000, random_state=0)
    numbers = table.select_dtypes("number").fillna(table.median(numeric_only=True)).to_numpy(dtype=float)
    for n in (200, 1000):  # half of them learnt from
        model = SoSBandRegressor(random_state=0).fit(numbers[:n], np.asarray(prices)[:n])
        with tempfile.TemporaryDirectory() as folder:
            paths = {kind: Path(folder) / f"model.{kind}" for kind in START}
            export_onnx(model, paths["onnx"])
            export_numpy(model, paths["npz"])
            model.save(paths["sosbands"])
            for kind, path in paths.items():
                code = START[kind].format(path=str(path), row=numbers[:1].tolist())
                wall, cpu = _cold_seconds(code, 2 if kind == "sosbands" else repeats)
                each = _row_seconds(kind, model, path, numbers)
                size = path.stat().st_size / 1e6
                speed = f"{1e6 * each:.0f} us per row of 1000"
                print(f"{n} rows, {kind}: {size:.2f} MB, cold {wall:.3f} s ({cpu:.3f} s of processor), {speed}")


def _cold_seconds(code: str, repeats: int) -> tuple[float, float]:
    """Least time of a new process, interpreter included, and least time of the processor: others disturb it least."""
    walls, cpus = [], []
    for _ in range(repeats):
        clock, before = perf_counter(), getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
        after = getrusage(RUSAGE_CHILDREN)
        walls.append(perf_counter() - clock)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(walls), min(cpus)


def _row_seconds(kind: str, model: SoSBandRegressor, path: Path, rows: np.ndarray) -> float:
    if kind == "onnx":
        session = onnx_session(path.read_bytes())
        score = lambda: session.run(None, {"X": rows})  # noqa: E731
    else:
        target = load_scorer(path) if kind == "npz" else model.predict_interval
        score = lambda: target(rows)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SosbandsWarning)
        score()
        clock = perf_counter()
        score()
        return (perf_counter() - clock) / len(rows)


if __name__ == "__main__":
    main()
