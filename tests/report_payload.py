"""What the page stores, read back: lists in place of their numbers in the pool, counts in place of texts."""

import numpy as np

from sosbands.report.packing import CODE


def decoded(text, count):
    """The whole numbers of a text."""
    size = len(text) // max(1, count)
    parts = [text[k * size : (k + 1) * size] for k in range(count)]
    return np.array([sum(CODE.index(c) * 64**p for p, c in enumerate(reversed(part))) for part in parts], dtype=int)


def unpacked(stored):
    """Every list of the pool."""
    lists = []
    for first, low, text, *is_differences in stored["pool"]:
        if isinstance(low, list):
            made = lists[first].copy()
            made[low] = np.array(text) / 10.0 ** stored["decimals"]
        else:
            whole = low + decoded(text, first)
            made = (np.cumsum(whole) if is_differences else whole) / 10.0 ** stored["decimals"]
        lists.append(made)
    return lists


def opened(stored, step, score=None):
    """A step with one score, by default that in use: what is known of its bands and what calibration makes of them."""
    lists = unpacked(stored)
    found = step["scores"][stored["score"] if score is None else stored["scores"].index(score)]

    def listed(k):
        return k[0] if isinstance(k, list) else lists[k]

    def bands(each):
        return {key: [listed(k) for k in each[key]] for key in ("reach", "units")}

    means = {name: lists[found[name]] for name in ("width", "error", "below", "above")}
    counts = {name: decoded(found[name], len(stored["levels"])) for name in ("both", "lower", "upper", "empty")}
    curves = [bands(each) for each in found["curves"]]
    return step | found | means | counts | {"test": bands(found["test"]), "curves": curves}
