"""``sosbands explore``: an interactive HTML page about a table and its intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sosbands import SoSBandRegressor
from sosbands.cli import options
from sosbands.cli.columns import learn_columns
from sosbands.cli.estimators import check_model, point_model, table_of_numbers
from sosbands.cli.output import Output
from sosbands.cli.progress import stages
from sosbands.cli.table_files import check_output, open_table
from sosbands.report import write_page


def explore(
    data: options.DataPath,
    target: options.Target,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE", help="HTML file to write.")],
    model: options.Model = "auto",
    confidence_level: options.NewLevel = 0.9,
    calibration: options.Calibration = "symmetric",
    score: options.Score = "added",
    symmetry_penalty: options.SymmetryPenalty = "auto",
    lengthscale: options.Lengthscale = "auto",
    drop: options.Drop = [],  # noqa: B006
    category: options.Category = [],  # noqa: B006
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
) -> None:
    """Learn bands from DATA and write one HTML page to explore them in a browser, without any server.

    \b
    Example:
      sosbands explore data.csv --target price -o price.html
    """  # noqa: D301
    says = Output()
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"output {output}: expected a name that ends in .html")
    check_output(output, apart_from=[data])
    columns, frame, y = learn_columns(open_table(data), target, drop, category)
    check_model(model, columns)
    X = table_of_numbers(columns, frame)
    regressor = SoSBandRegressor(
        point_model(model, seed=seed, jobs=jobs),
        confidence_level=confidence_level,
        calibration=calibration,
        conformal_score=score,
        symmetry_penalty=symmetry_penalty,
        lengthscale=lengthscale,
        random_state=seed,
    )
    with says.listening(), stages("exploring", shown=True):
        write_page(X, y, output, target_name=target, estimator=regressor, random_state=seed, n_jobs=jobs)
    says.result(f"Page written to {output}", {"output": str(output)})
