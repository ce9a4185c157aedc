"""The page about clusters: its code runs on one."""

from test_docs import PAGES, blocks, same_output


def test_the_page_runs(client, tmp_path, monkeypatch, capsys):
    from sosbands.datasets import delivery_times

    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    for k in range(2):
        rows = delivery_times(40, k, as_frame=True)[0]
        rows.assign(id=range(40)).to_parquet(f"rows/part.{k}.parquet")
    names = {"client": client}
    for block, output in blocks(PAGES["cluster"]):
        exec(compile(block, "cluster.md", "exec"), names)
        printed = capsys.readouterr().out
        assert output is None or same_output(output, printed)
    assert names["n_rows"] == 80
    assert [row["error"] for row in names["result"].rows] == [None] * 4
