"""The tasks behind the entries, the methods they run, and where their rows are kept."""
