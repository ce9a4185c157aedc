"""One file per figure or table: `compute(config)` gives rows, `draw(rows)` a figure or a table of them."""
