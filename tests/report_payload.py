"""What the page stores, read back: lists in place of their numbers in the pool."""

import base64
import gzip
import json
import re

from sosbands.report.payload import payload


def unpacked(text):
    """What stands in the page."""
    return json.loads(gzip.decompress(base64.b64decode(text, validate=True)))


def data_of(page):
    """The data inside a page of `explore`."""
    return unpacked(re.search(r'<script [^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])


def opened(stored, step, score=None):
    """A step with one score, by default that in use: what is known of its bands and what calibration makes of them."""
    lists = stored["pool"]
    found = step["scores"][stored["score"] if score is None else stored["scores"].index(score)]

    def listed(k):
        return k[0] if isinstance(k, list) else lists[k]

    def bands(each):
        return {key: [listed(k) for k in each[key]] for key in ("reach", "units")}

    means = {name: lists[found[name]] for name in ("width", "error", "below", "above", "narrow", "wide")}
    return step | found | means | {key: bands(found[key]) for key in ("test", "curve")}


def in_use(data, score=None):
    """What the page stores of an exploration, and of it the step that the model takes, by default with its score."""
    stored = payload(data)
    return stored, opened(stored, stored["coverages"][stored["coverage"]]["steps"][data.path.chosen], score)
