"""Tables by their types: from data frames with numbers, categories, booleans, dates and gaps to finite numbers."""

from sosbands.tables.encoder import TableEncoder

__all__ = ["TableEncoder"]
