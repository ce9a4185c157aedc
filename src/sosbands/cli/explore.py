"""``sosbands explore``: an interactive HTML page about a table and its intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.columns import Tally, learn_columns
from sosbands.cli.estimators import band_regressor, read_point_model
from sosbands.cli.given_models import GivenModel, model_files
from sosbands.cli.interruption import choice_ends_early
from sosbands.cli.output import Output
from sosbands.cli.progress import stages
from sosbands.cli.table_files import check_output, open_table
from sosbands.report import write_page


def explore(  # noqa: PLR0913
    data: options.DataPath,
    target: options.Target,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE", help="HTML file to write.")],
    model: options.Model = "auto",
    refit: options.Refit = False,
    confidence_level: options.NewLevel = 0.9,
    calibration: options.Calibration = "symmetric",
    score: options.Score = "auto",
    symmetry_penalty: options.SymmetryPenalty = "auto",
    lengthscale: options.Lengthscale = "auto",
    base_scale: options.BaseScale = "auto",
    noise_features: options.NoiseFeatures = "auto",
    width_penalty: options.WidthPenalty = "auto",
    learning_coverage: options.LearningCoverage = "auto",
    outlier_fraction: options.OutlierFraction = "0",
    rank: options.Rank = "auto",
    max_seconds: options.MaxSeconds = "60",
    drop: options.Drop = [],  # noqa: B006
    category: options.Category = [],  # noqa: B006
    drop_missing_target: options.DropMissingTarget = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
) -> None:
    """Learn bands from DATA and write one HTML page to explore them in a browser, without any server.

    Gaps are filled and texts encoded by the learning rows. Columns of texts, and those with gaps, have no axis of
    their own. Ctrl-C while the bands are chosen takes the best found so far; a second one ends the command.

    \b
    Example:
      sosbands explore data.csv --target price -o price.html
    """  # noqa: D301
    says = Output()
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"output {output}: expected a name that ends in .html")
    check_output(output, apart_from=[data, *model_files(model)])
    settings = {
        "confidence_level": confidence_level,
        "calibration": calibration,
        "conformal_score": score,
        "symmetry_penalty": symmetry_penalty,
        "lengthscale": lengthscale,
        "base_scale": base_scale,
        "noise_features": noise_features,
        "width_penalty": width_penalty,
        "learning_coverage": learning_coverage,
        "outlier_fraction": outlier_fraction,
        "rank": rank,
        "max_seconds": max_seconds,
    }
    with says.listening(), stages("exploring", shown=True) as step:
        point_model = read_point_model(model, refit=refit)
        step(f"reading {data}")
        columns, frame, y = learn_columns(
            open_table(data), target, drop, category, says if drop_missing_target else None
        )
        regressor = band_regressor(columns, point_model, seed=seed, jobs=jobs, **settings)
        if isinstance(point_model, GivenModel):
            point_model.introduce(says, columns, frame, data)
        step(f"{many(len(y), 'row')}, {many(len(columns.kinds), 'column')}; point model first")
        with choice_ends_early():
            write_page(frame, y, output, target_name=target, estimator=regressor, random_state=seed, n_jobs=jobs)
    missing = Tally(columns)
    missing.count(frame)
    missing.report(says)
    says.result(f"Page written to {output}", {"output": str(output)})
