"""Claims of the paper about the real data sets, as functions of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from sosbands.comparison import MeanInterval, corrected_interval
from studies.claims.verdicts import (
    CONFIRMED,
    MARGIN,
    NOT_CONFIRMED,
    OPEN,
    Claim,
    MissingRowsError,
    Verdict,
    above,
    all_of,
    below,
    means,
    near,
    needed,
    paired,
    share,
    shown,
)
from studies.data import real_names
from studies.drawing.figures import column, grouped, succeeded
from studies.drawing.real_tables import NOMINAL, overlap, worst_set_distance, worst_set_values
from studies.runs.config import Rows
from studies.runs.methods import PAPER, PAPER_CQR, SHOWN
from studies.runs.paper_numbers import printed
from studies.runs.real_runs import LEVEL

GPS = ("gp", "het-gp")
RIVALS = (PAPER_CQR, *GPS)
METHODS = (PAPER, *RIVALS)
MUCH = 1.1  # a ratio that counts as much wider
NARROWEST = 1.025  # a ratio to the smallest width up to which the paper prints bold type
SIMILAR_COVERAGE = 0.01  # differences of coverages up to this count as similar
HIGH = 1000.0  # penalties from here on, in normalised units, count as high: two of the five candidates
CLOSE = 0.005  # a distance from nominal that counts as close to another
TIE = 1e-9
# pairs with similar worst-set coverage, in the words of the paper
SIMILAR = {"Bike": ("gp",), "Energy": GPS, "Miami": GPS, "Sulfur": ("gp",), "Power": ("het-gp",), "Yacht": ("het-gp",)}


# ---------------------------------------------------------------- coverage


def covers(rows: Rows) -> Verdict:
    """The mean coverage of each method, over data sets, is not below nominal by 0.01."""
    words, figures = [], []
    for method, some in grouped(succeeded(rows), "method").items():
        by_set = [float(column(group, "coverage").mean()) for group in grouped(some, "dataset").values()]
        found = corrected_interval(by_set, 0.0)
        words.append(above(found, LEVEL - 0.01))
        figures.append(f"{SHOWN[method]} {found.mean:.3f} [{found.lower:.3f}, {found.upper:.3f}]")
    return Verdict(all_of(*words), "; ".join(figures))


def closest_worst_set(rows: Rows, dataset: str, rivals: tuple[str, ...] = RIVALS) -> Verdict:
    """The worst-set coverage of the paper's bands is nearer to nominal than that of each rival."""
    some = _with_distance(_of_set(rows, dataset))
    gaps, lacking = _differences(some, "distance", dataset, rivals, PAPER)
    distances = {name: value for name, value in means(some, "distance").items() if name in (PAPER, *gaps)}
    pooled = {name: worst_set_values(group).mean() for name, group in _by_method(some)}
    order = sorted(distances, key=lambda name: distances[name])
    values = ", ".join(f"{SHOWN[name]} {distances[name]:.3f} (mean {pooled[name]:.3f})" for name in order)
    nearest = min(gaps, key=lambda rival: distances[rival])
    difference = f"pen. kSoS minus {SHOWN[nearest]} {shown(gaps[nearest])}"
    figure = f"distance from {NOMINAL:g}: {values}; {difference}{lacking}"
    return Verdict(all_of(*map(below, gaps.values()), *([OPEN] if lacking else [])), figure)


def similar_worst_sets(rows: Rows, pairs: Mapping[str, tuple[str, ...]]) -> Verdict:
    """The distances of the worst-set coverages from nominal differ by at most 0.01, for rivals by data set."""
    words, figures = [], []
    for dataset, rival in [(name, rival) for name, rivals in pairs.items() for rival in rivals]:
        differences = paired(_with_distance(_of_set(rows, dataset)), "distance", PAPER, rival)
        gap = corrected_interval(differences, overlap(dataset))
        words.append(near(gap, SIMILAR_COVERAGE))
        figures.append(f"{dataset}, {SHOWN[rival]} {shown(gap)}")
    return Verdict(all_of(*words), f"pen. kSoS minus: {'; '.join(figures)}")


def nearer_on_sets(rows: Rows, rival: str) -> Verdict:
    """The worst-set coverage of the paper's bands is nearer to nominal than a rival's on most data sets."""
    gaps, pooled = [], []
    for some in grouped(succeeded(rows), "dataset").values():
        distances = means(_with_distance(some), "distance")
        if PAPER in distances and rival in distances:
            gaps.append(distances[rival] - distances[PAPER])
            away = {name: abs(worst_set_values(group).mean() - NOMINAL) for name, group in _by_method(some)}
            pooled.append(away[rival] - away[PAPER])
    decided = [gap > 0 for gap in needed(gaps, f"sets with {SHOWN[rival]}") if abs(gap) > TIE]
    found = share(np.array(decided))
    ties = len(gaps) - len(decided)
    figure = f"on {sum(decided)} of {len(decided)} sets{f', {ties} tied' if ties else ''}, {shown(found, '.0%')}"
    by_mean = sum(gap > TIE for gap in pooled)
    return Verdict(above(found, 0.5), f"{figure}; by the distance of the mean on {by_mean} of {len(gaps)}")


def nearer_on_average(rows: Rows, method: str, rivals: tuple[str, ...]) -> Verdict:
    """Over data sets, the worst-set coverage of a method is nearer to nominal than that of each rival."""
    words, figures = [], []
    for rival in rivals:
        both = [means(_with_distance(some), "distance") for some in grouped(succeeded(rows), "dataset").values()]
        gaps = [each[method] - each[rival] for each in both if method in each and rival in each]
        gap = corrected_interval(needed(gaps, f"sets with {SHOWN[rival]}"), 0.0)
        words.append(below(gap))
        figures.append(f"minus {SHOWN[rival]} {shown(gap)}")
    return Verdict(all_of(*words), f"distance from {NOMINAL:g}, {SHOWN[method]} {', '.join(figures)}")


def first_or_second(rows: Rows) -> Verdict:
    """By worst set and by width the paper's bands, and no others, are first or close second on every data set."""
    sets = _complete_sets(rows)
    ranks = {method: {name: _ranks(some, method) for name, some in sets.items()} for method in METHODS}
    good = {method: sum(max(each) <= 2 for each in ranks[method].values()) for method in METHODS}
    rest = ", ".join(f"{name} {each}" for name, each in ranks[PAPER].items() if max(each) > 2)
    others = ", ".join(f"{SHOWN[method]} on {good[method]}" for method in RIVALS)
    figure = f"on {good[PAPER]} of {len(sets)} sets ({others}); ranks by worst set and width elsewhere: {rest or '-'}"
    alone = good[PAPER] == len(sets) and all(good[method] < len(sets) for method in RIVALS)
    word = CONFIRMED if alone else NOT_CONFIRMED
    return Verdict(word, f"{figure}; by the printed widths alone on {_printed_first_or_second()} of 12")


# ---------------------------------------------------------------- widths


def narrower(rows: Rows, dataset: str, rivals: tuple[str, ...], methods: tuple[str, ...] = (PAPER,)) -> Verdict:
    """Each method is narrower than each rival, on one data set."""
    some = _of_set(rows, dataset)
    words, figures, missing = [], [], ""
    for method in methods:
        unit = means(some, "mean_width").get(method, np.nan)
        relative = [{**row, "relative": row["mean_width"] / unit} for row in some]
        gaps, lacking = _differences(relative, "relative", dataset, rivals, method)
        words += [*map(below, gaps.values()), *([OPEN] if lacking else [])]
        name = f"{SHOWN[method]} " if len(methods) > 1 else ""
        figures += [f"{name}to {SHOWN[rival]} {shown(gap)}" for rival, gap in gaps.items()]
        missing = missing or lacking
    return Verdict(all_of(*words), f"relative difference of widths {'; '.join(figures)}{missing}")


def same_width(rows: Rows, dataset: str, rival: str) -> Verdict:
    """The paper's bands and a rival differ by at most 5 % in mean width, on one data set."""
    some = _of_set(rows, dataset)
    unit = means(some, "mean_width").get(rival, np.nan)
    gap = corrected_interval(paired(some, "mean_width", PAPER, rival) / unit, overlap(dataset))
    return Verdict(near(gap, MARGIN), f"relative difference to {SHOWN[rival]} {shown(gap)}")


def much_wider(rows: Rows, rival: str) -> Verdict:
    """A rival's median width is more than 10 % above that of the paper's bands on most data sets."""
    widths = [each for each in _median_widths(rows).values() if rival in each and PAPER in each]
    ratios = np.array([each[rival] / each[PAPER] for each in needed(widths, f"sets with {SHOWN[rival]}")])
    found = share(ratios > MUCH)
    figure = f"over {MUCH:g} times on {np.sum(ratios > MUCH)}, wider on {np.sum(ratios > 1)} of {len(ratios)} sets"
    printed_ratios = np.array([each[rival] / each[PAPER] for each in _printed_widths().values()])
    by_print = f"by the printed medians on {np.sum(printed_ratios > MUCH)} and {np.sum(printed_ratios > 1)}"
    return Verdict(above(found, 0.5), f"{figure}, {shown(found, '.0%')}; {by_print}")


def narrowest(rows: Rows, method: str) -> Verdict:
    """A method's median width is within 2.5 % of the smallest on most data sets."""
    sets = {name: each for name, each in _median_widths(rows).items() if set(METHODS) <= each.keys()}
    found = share(np.array([_is_narrowest(each, method) for each in needed(list(sets.values()), "all methods")]))
    count = sum(_is_narrowest(each, method) for each in sets.values())
    by_print = sum(_is_narrowest(each, method) for each in _printed_widths().values())
    figure = f"on {count} of {len(sets)} sets, {shown(found, '.0%')}; by the printed medians on {by_print}"
    return Verdict(above(found, 0.5), figure)


# ---------------------------------------------------------------- selected penalties


def never_asymmetric(rows: Rows, dataset: str) -> Verdict:
    """The paper's rule selects penalty 0 in no split."""
    some = _of_paper(rows, dataset)
    flags = column(some, "symmetry_penalty") == 0
    word = NOT_CONFIRMED if flags.any() else CONFIRMED if len(flags) >= 10 else OPEN
    return Verdict(word, f"penalty 0 in {flags.sum()} of {len(flags)} splits, {shown(share(flags), '.0%')}")


def half_symmetric(rows: Rows, dataset: str, low: float = 0.15, high: float = 0.85) -> Verdict:
    """The paper's rule selects an infinite penalty in half of the splits, bands of constant width counted or not."""
    some = _of_paper(rows, dataset)
    infinite = np.isinf(column(some, "symmetry_penalty"))
    constant = np.array([bool(row["constant_width"]) for row in some])
    words = set()
    for found in (share(infinite), share(infinite & ~constant)):
        refuted = not found.lower <= 0.5 <= found.upper
        inside = low <= found.lower and found.upper <= high
        words.add(NOT_CONFIRMED if refuted else CONFIRMED if inside else OPEN)
    figure = f"infinite penalty in {shown(share(infinite), '.0%')} of {len(some)} splits, "
    word = words.pop() if len(words) == 1 else OPEN  # the paper does not say which it counts
    return Verdict(word, f"{figure}{constant.sum()} of them with constant width")


def mostly_high(rows: Rows, dataset: str) -> Verdict:
    """The paper's rule selects one of the two highest penalties in most splits."""
    some = _of_paper(rows, dataset)
    found = share(column(some, "symmetry_penalty") >= HIGH)
    constant = sum(bool(row["constant_width"]) for row in some)
    figure = f"{HIGH:g} or more in {shown(found, '.0%')} of {len(some)} splits, {constant} of them with constant width"
    return Verdict(above(found, 0.5), figure)


# ---------------------------------------------------------------- parts


def _with_distance(rows: Rows) -> Rows:
    return [{**row, "distance": worst_set_distance(row)} for row in rows]


def _by_method(rows: Rows) -> list[tuple[str, Rows]]:
    return list(grouped(rows, "method").items())


def _medians(rows: Rows) -> dict[str, float]:
    """Median width of each method."""
    return {method: float(np.median(column(group, "mean_width"))) for method, group in _by_method(rows)}


def _median_widths(rows: Rows) -> dict[str, dict[str, float]]:
    """By data set and method."""
    return {name: _medians(some) for name, some in grouped(succeeded(rows), "dataset").items()}


def _printed_widths() -> dict[str, dict[str, float]]:
    """The medians of the paper, by data set and method."""
    found = {name: {method: printed("mean_width", name, method) for method in METHODS} for name in real_names()}
    return {name: {method: n.value for method, n in each.items() if n} for name, each in found.items()}


def _is_narrowest(widths: Mapping[str, float], method: str) -> bool:
    return widths[method] <= NARROWEST * min(widths[each] for each in METHODS)


def _printed_first_or_second() -> int:
    return sum(_width_rank(widths, PAPER) <= 2 for widths in _printed_widths().values())


def _ranks(rows: Rows, method: str) -> tuple[int, int]:
    """By distance of the worst-set coverage and by median width; what is close counts as equal."""
    distances = means(_with_distance(rows), "distance")
    nearer = sum(value < distances[method] - CLOSE - TIE for value in distances.values())
    return 1 + nearer, _width_rank(_medians(rows), method)


def _width_rank(widths: Mapping[str, float], method: str) -> int:
    return 1 + sum(NARROWEST * width < widths[method] for width in widths.values())


def _differences(
    rows: Rows, name: str, dataset: str, rivals: tuple[str, ...], method: str
) -> tuple[dict[str, MeanInterval], str]:
    """A method minus each rival, and in words the rivals with fewer than two common splits."""
    gaps, lacking = {}, []
    for rival in rivals:
        try:
            gaps[rival] = corrected_interval(paired(rows, name, method, rival), overlap(dataset))
        except MissingRowsError:
            lacking.append(SHOWN[rival])
    needed(list(gaps), f"rivals on {dataset}")
    return gaps, f"; too few splits of {', '.join(lacking)}" if lacking else ""


def _of_set(rows: Rows, dataset: str) -> Rows:
    return needed([row for row in succeeded(rows) if row["dataset"] == dataset], f"rows of {dataset}")


def _of_paper(rows: Rows, dataset: str) -> Rows:
    return needed([row for row in _of_set(rows, dataset) if row["method"] == PAPER], f"pen. kSoS on {dataset}")


def _complete_sets(rows: Rows) -> dict[str, Rows]:
    """Data sets with rows of all four methods, and of these the repetitions that all methods have."""
    found = {}
    for name, some in grouped(succeeded(rows), "dataset").items():
        by_method = grouped(some, "method")
        if all(method in by_method for method in METHODS):
            common = set.intersection(*({row["repetition"] for row in group} for group in by_method.values()))
            if common:
                found[name] = [row for row in some if row["repetition"] in common]
    needed(list(found), "data sets with all methods")
    return found


# ---------------------------------------------------------------- the list


def _same_width(dataset: str, rival: str) -> Claim:
    check = partial(same_width, dataset=dataset, rival=rival)
    return Claim(f"{dataset}: the same width (5 %) as {SHOWN[rival]}", "real-width", check)


def _closest(dataset: str, words: str, rivals: tuple[str, ...] = RIVALS) -> Claim:
    check = partial(closest_worst_set, dataset=dataset, rivals=rivals)
    return Claim(f"{dataset}: {words}", "real-worst-set", check)


def _narrower(dataset: str, words: str, rivals: tuple[str, ...], methods: tuple[str, ...] = (PAPER,)) -> Claim:
    check = partial(narrower, dataset=dataset, rivals=rivals, methods=methods)
    return Claim(f"{dataset}: {words}", "real-width", check)


def _mostly_high(dataset: str) -> Claim:
    return Claim(f"{dataset}: mostly high penalties", "real-penalties", partial(mostly_high, dataset=dataset))


CLAIMS = (
    Claim("All methods reach the nominal coverage (to 0.01)", "real-coverage", covers),
    Claim(
        "First or close second (0.005, 2.5 %) by WSC^c and by width on every set, as no other",
        "real-worst-set",
        first_or_second,
    ),
    Claim("Narrowest (within 2.5 %) on most sets", "real-width", partial(narrowest, method=PAPER)),
    Claim("Hom. GP narrowest (within 2.5 %) on most sets", "real-width", partial(narrowest, method="gp")),
    Claim("CQR is much wider (10 %) on most sets", "real-width", partial(much_wider, rival=PAPER_CQR)),
    Claim("WSC^c nearer than CQR's on most sets", "real-worst-set", partial(nearer_on_sets, rival=PAPER_CQR)),
    Claim("WSC^c nearer than the hom. GP's on most sets", "real-worst-set", partial(nearer_on_sets, rival="gp")),
    Claim("WSC^c nearer than the het. GP's on most sets", "real-worst-set", partial(nearer_on_sets, rival="het-gp")),
    Claim(
        "WSC^c nearer than both GPs' on average", "real-worst-set", partial(nearer_on_average, method=PAPER, rivals=GPS)
    ),
    Claim(
        "CQR's WSC^c nearer than both GPs' on average",
        "real-worst-set",
        partial(nearer_on_average, method=PAPER_CQR, rivals=GPS),
    ),
    _closest("Concrete", "WSC^c closest to 1 - alpha/2"),
    _narrower("Concrete", "both GPs and pen. kSoS narrower than CQR", (PAPER_CQR,), (PAPER, *GPS)),
    Claim(
        "Diabetes: WSC^c similar (0.01) to the hom. GP's",
        "real-worst-set",
        partial(similar_worst_sets, pairs={"Diabetes": ("gp",)}),
    ),
    _narrower("Diabetes", "narrower than the hom. GP (main text)", ("gp",)),
    _same_width("Diabetes", "gp"),
    _same_width("Diabetes", PAPER_CQR),
    _closest("Diabetes", "WSC^c nearer than CQR's", (PAPER_CQR,)),
    Claim(
        "Diabetes: a symmetric model half of the time",
        "real-penalties",
        partial(half_symmetric, dataset="Diabetes"),
    ),
    _closest("Housing", "WSC^c closest to 1 - alpha/2"),
    _narrower("Housing", "the others are narrower", (PAPER,), RIVALS),
    _narrower("Housing", "hom. GP narrowest", (PAPER, PAPER_CQR, "het-gp"), ("gp",)),
    _narrower("Boston", "hom. GP narrowest", (PAPER, PAPER_CQR, "het-gp"), ("gp",)),
    _closest("Boston", "WSC^c nearer than the hom. GP's", ("gp",)),
    Claim(
        "Bike, Energy, Miami, Sulfur, Power, Yacht: WSC^c similar (0.01) to a GP's",
        "real-worst-set",
        partial(similar_worst_sets, pairs=SIMILAR),
    ),
    _same_width("Bike", "gp"),
    Claim("Bike: pure asymmetry is never selected", "real-penalties", partial(never_asymmetric, dataset="Bike")),
    _narrower("Energy", "narrower than both GPs", GPS),
    _narrower("Miami", "narrower than both GPs", GPS),
    _same_width("Sulfur", "gp"),
    _mostly_high("Sulfur"),
    _same_width("Power", "het-gp"),
    _mostly_high("Power"),
    _same_width("Yacht", "het-gp"),
    _mostly_high("Yacht"),
)
