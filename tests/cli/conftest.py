"""Tables and models that many tests of the command line read, and none writes to."""

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Tables of numbers, of mixed columns and of groups, new rows of each, and models of them."""
    from cli_runs import done, fit, grouped_table, mixed_table, number_table

    path = tmp_path_factory.mktemp("cli")
    for name, table in (("numbers", number_table), ("mixed", mixed_table), ("groups", grouped_table)):
        for rows, file in ((table(), name), (table(100 if name == "groups" else 50, seed=1), f"{name}-new")):
            rows.to_csv(path / f"{file}.csv", index=False)
            rows.to_parquet(path / f"{file}.parquet")
    for name in ("numbers", "mixed"):
        done(*fit(path / f"{name}.csv", path / f"{name}.model"))
    (path / "cross.json").write_text(
        done(*fit(path / "mixed.csv", path / "cross.model", "--calibration-size", "cross", "--json"))
    )
    kinds = {
        "plain": ("--drop", "ward"),
        "groups": ("--groups", "ward"),
        "upper": ("--drop", "ward", "--side", "upper", "--calibration-size", "0.5"),
    }
    for name, words in kinds.items():
        done(*fit(path / "groups.csv", path / f"{name}.model", "--drop", "row", *words))
    return path
