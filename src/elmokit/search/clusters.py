"""Group vectors that are alike: k-means, which finds the same groups each time, and how many there are."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.intp]

_MOST_GROUPS = 5
_ROUNDS = 50
_STARTS = 9
# Mean silhouette below which uses do not fall into groups.
_LEAST_SILHOUETTE = 0.08
_CLEARLY = 1.2  # times the silhouette of fewer groups


def cluster(vectors: Floats, groups: int | None = None) -> Labels:
    """Return the group (n,) of each vector, the largest group first.

    Args:
        vectors: (n, D).
        groups: How many; by default as many as have the best silhouette, or one if there are none to see.

    Example:
        >>> points = np.array([[1, 0], [0, 1], [1, 0.1], [0.9, 0], [0.1, 1]], np.float32)
        >>> cluster(points, 2).tolist()
        [0, 1, 0, 0, 1]
    """
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    centred = unit - unit.mean(axis=0)
    distances = _distances(centred) if len(unit) <= 1000 else None
    if groups is not None:
        return _by_size(_k_means(centred, min(groups, len(unit))))
    best = np.zeros(len(unit), np.intp)
    score = _LEAST_SILHOUETTE
    for number in range(2, min(_MOST_GROUPS, len(unit) // 3) + 1):
        labels = _k_means(centred, number)
        found = _silhouette(centred, labels, distances)
        if found > score * (_CLEARLY if number > 2 else 1):  # fewer groups unless more are better
            best, score = labels, found
    return _by_size(best)


def _k_means(points: Floats, groups: int) -> Labels:
    """Return the tightest groups of several runs: one starts from points far apart, the others from any."""
    far = [points[np.argmax(np.linalg.norm(points, axis=1))]]
    while len(far) < groups:
        nearest = np.min([np.linalg.norm(points - centre, axis=1) for centre in far], axis=0)
        far.append(points[np.argmax(nearest)])
    draw = np.random.default_rng(0)  # the same groups each time
    drawn = (points[draw.choice(len(points), groups, replace=False)] for _ in range(_STARTS))
    runs = [_moved(points, centres) for centres in (np.stack(far), *drawn)]
    return min(runs, key=lambda labels: _spread(points, labels))


def _moved(points: Floats, centres: Floats) -> Labels:
    """Give each point to the nearest centre and move the centres to the means, until nothing changes."""
    labels = np.full(len(points), -1, np.intp)
    for _ in range(_ROUNDS):
        new = ((centres**2).sum(axis=1) - 2 * points @ centres.T).argmin(axis=1)
        if (new == labels).all():
            break
        labels = new
        used = [points[labels == group] for group in range(len(centres))]
        centres = np.stack(
            [own.mean(axis=0) if len(own) else centre for own, centre in zip(used, centres, strict=True)]
        )
    return labels


def _spread(points: Floats, labels: Labels) -> float:
    """Return the sum of the squared distances of the points to the means of their groups."""
    groups = (points[labels == group] for group in np.unique(labels))
    return float(sum(((own - own.mean(axis=0)) ** 2).sum() for own in groups))


def _silhouette(points: Floats, labels: Labels, distances: Floats | None) -> float:
    """Return the mean of (b - a) / max(a, b): a the mean distance in the own group, b to the next one."""
    if distances is None:  # of a sample, since it takes the square of their number
        chosen = np.random.default_rng(0).choice(len(points), 1000, replace=False)
        points, labels = points[chosen], labels[chosen]
        distances = _distances(points)
    groups = np.unique(labels)
    if len(groups) < 2:
        return 0.0
    sums = np.stack([distances[:, labels == group].sum(axis=1) for group in groups])  # (groups, n)
    sizes = np.array([(labels == group).sum() for group in groups])
    own = np.searchsorted(groups, labels)
    rows = np.arange(len(labels))
    inside = sums[own, rows] / np.maximum(sizes[own] - 1, 1)
    means = sums / sizes[:, None]
    means[own, rows] = np.inf
    outside = means.min(axis=0)
    values = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-12)
    return float(np.where(sizes[own] > 1, values, 0).mean())


def _distances(points: Floats) -> Floats:
    """Return the distance of each point to each other one, (n, n); memory is that of the result."""
    squares = (points**2).sum(axis=1)
    squared = squares[:, None] + squares - 2 * points @ points.T
    return np.asarray(np.sqrt(np.maximum(squared, 0)), np.float32)


def _by_size(labels: Labels) -> Labels:
    found, counts = np.unique(labels, return_counts=True)
    order = found[np.argsort(-counts, kind="stable")]
    ranks = {group: rank for rank, group in enumerate(order.tolist())}
    return np.array([ranks[label] for label in labels.tolist()], np.intp)
