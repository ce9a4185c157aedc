"""What figures and tables of several entries share: panels, captions, cells."""
