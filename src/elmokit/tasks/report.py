"""What training and evaluation leave behind to be read: a table, and the errors one by one."""

import csv
from collections.abc import Sequence
from pathlib import Path

from elmokit.tasks.decisions import Decision
from elmokit.tasks.examples import Example
from elmokit.tasks.inputs import LearntMix
from elmokit.tasks.metrics import Scores
from elmokit.tasks.schemes import Scheme, find_spans


def scores_text(scores: Scores) -> str:
    """The scores as a table for people, in percent."""
    low, high = scores.interval
    lines = [f"{name:<16}{100 * value:7.2f}" for name, value in scores.values.items()]
    lines[0] += f"   95 % within {100 * low:.2f} and {100 * high:.2f}"
    width = max([5, *(len(one.label) for one in scores.classes)])
    lines += ["", f"{'label':<{width}}  precision  recall      F1  support"]
    lines += [
        f"{one.label:<{width}}  {100 * one.precision:9.2f} {100 * one.recall:7.2f} {100 * one.f1:7.2f} "
        f"{one.support:8,}"
        for one in scores.classes
    ]
    return "\n".join(lines)


def mixes_text(mixes: Sequence[LearntMix]) -> str:
    """The learnt weights of the layers as a table for people."""
    lines = []
    for mix in mixes:
        shares = "  ".join(f"{share:.3f}" for share in mix.shares)
        lines.append(f"{mix.place:<7} γ {mix.gamma:6.3f}   layers from below  {shares}   {mix.encoder}")
    return "\n".join(lines)


def write_errors(
    path: Path, examples: Sequence[Example], decisions: Sequence[Decision], scheme: Scheme
) -> int:
    """Write what was decided wrongly as a table (place, text, right, decided); returns how many there are."""
    rows = []
    for example, decision in zip(examples, decisions, strict=True):
        right = _said(example.tokens, example.tags, example.labels, scheme)
        decided = _said(example.tokens, decision.tags, decision.labels, scheme)
        if right != decided:
            rows.append((example.where, " ".join(example.tokens), right, decided))
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(
            file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, escapechar="\\"
        )
        writer.writerows([("where", "text", "right", "decided"), *rows])
    return len(rows)


def _said(tokens: Sequence[str], tags: Sequence[str], labels: Sequence[str], scheme: Scheme) -> str:
    """Labels and spans in words."""
    if scheme == "plain":
        spans = [f"{tag}:{token}" for token, tag in zip(tokens, tags, strict=False)]
    else:
        spans = [
            f"{span.label}:{' '.join(tokens[span.start : span.end])}@{span.start}"
            for span in find_spans(tags)
        ]
    return " | ".join([*sorted(labels), *spans])
