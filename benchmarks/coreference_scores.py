"""Compare our scores of coreference with those of two reference scorers, on random documents.

    python benchmarks/coreference_scores.py COVAL COREFUD [--python PYTHON] [--rounds 20]

COVAL and COREFUD are clones of the repositories ns-moosavi/coval and ufal/corefud-scorer (the package called
coval on PyPI is something else), PYTHON an interpreter that has what they need (numpy, scipy, udapi). A true
annotation is changed at random: mentions are lost, made up or moved, clusters merged and split. Both scorers
print two decimals. The line goes to benchmarks/results/coreference-scores.md.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from common import RESULTS
from elmokit.tasks.coreference import score_clusters

Mention = tuple[int, int]
Clusters = list[list[Mention]]

SENTENCES, WORDS = 8, 14
NAMES = {"muc": "muc", "b3": "bcub", "ceafe": "ceafe"}


def random_mentions(draw: random.Random) -> list[Mention]:
    """Mentions that do not cross: a few in each sentence, some of them inside others."""
    mentions = set()
    for sentence in range(SENTENCES):
        at = sentence * WORDS
        end = at + WORDS
        while at < end - 1:
            at += draw.randrange(1, 4)
            last = min(end, at + draw.randrange(1, 5))
            if at < last:
                mentions.add((at, last))
                if last - at > 2 and draw.random() < 0.5:
                    mentions.add((at, at + 1))
            at = last
    return sorted(mentions)


def random_clusters(mentions: list[Mention], draw: random.Random) -> Clusters:
    """Each mention in one of some clusters; several have a single mention."""
    clusters: dict[int, list[Mention]] = defaultdict(list)
    for mention in mentions:
        clusters[draw.randrange(max(1, len(mentions) // 3))].append(mention)
    return list(clusters.values())


def changed(clusters: Clusters, draw: random.Random) -> Clusters:
    """A response to a key: some mentions lost, some in other clusters, some new."""
    kept = [[one for one in cluster if draw.random() < 0.85] for cluster in clusters]
    known = {one for cluster in clusters for one in cluster}
    taken = {place for start, end in known for place in range(start, end)}
    for place in range(SENTENCES * WORDS):
        if place not in taken and draw.random() < 0.2:
            draw.choice(kept).append((place, place + 1))
    for _ in range(len(kept) // 4):
        one, other = draw.sample(range(len(kept)), 2)
        moved = kept[one][: draw.randrange(len(kept[one]) + 1)]
        kept[one] = kept[one][len(moved) :]
        kept[other] += moved
    return [sorted(cluster) for cluster in kept if cluster]


def marks(clusters: Clusters) -> tuple[dict[int, list[tuple[int, int]]], dict[int, list[tuple[int, int]]]]:
    """For each word the (other end, cluster) of mentions that start there and of those that end there."""
    opened, closed = defaultdict(list), defaultdict(list)
    for number, cluster in enumerate(clusters, start=1):
        for start, end in cluster:
            opened[start].append((-end, number))
            closed[end - 1].append((-start, number))
    return opened, closed


def as_conll(documents: list[Clusters]) -> str:
    """The brackets of CoNLL-2012."""
    lines = []
    for name, clusters in enumerate(documents):
        lines.append(f"#begin document (d{name}); part 000")
        opened, closed = marks(clusters)
        for word in range(SENTENCES * WORDS):
            if word % WORDS == 0 and word:
                lines.append("")
            shown = [f"({n})" if -end == word + 1 else f"({n}" for end, n in sorted(opened[word])]
            shown += [f"{n})" for start, n in sorted(closed[word]) if -start != word]
            lines.append(f"d{name}\t0\t{word % WORDS}\tw{word}\t{'|'.join(shown) or '-'}")
        lines += ["", "#end document"]
    return "\n".join(lines) + "\n"


def as_corefud(documents: list[Clusters]) -> str:
    """CoNLL-U with `Entity` in its last column, each head the first word of its mention."""
    lines = []
    for name, clusters in enumerate(documents):
        opened, closed = marks(clusters)
        for word in range(SENTENCES * WORDS):
            if word % WORDS == 0:
                lines += [""] if word or name else []
                if not word:
                    lines += [f"# newdoc id = d{name}", "# global.Entity = eid-etype-head-other"]
                lines.append(f"# sent_id = d{name}-{word // WORDS}")
            ends = [f"e{name}x{n})" for start, n in sorted(closed[word]) if -start != word]
            begins = [
                f"(e{name}x{n}--1-)" if -end == word + 1 else f"(e{name}x{n}--1-"
                for end, n in sorted(opened[word])
            ]
            misc = f"Entity={''.join([*begins, *ends])}" if begins or ends else "_"
            place = word % WORDS + 1
            relation = f"{place - 1}\t{'dep' if place > 1 else 'root'}"
            lines.append(f"{place}\tw{word}\t_\t_\t_\t_\t{relation}\t_\t{misc}")
    return "\n".join(lines) + "\n\n"


def reference(command: list[str], key: str, response: str, ending: str) -> dict[str, tuple[float, ...]]:
    """Recall, precision and F1 of each score, as the scorer prints them."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{name}.{ending}") for name in ("key", "response")]
        for path, text in zip(paths, (key, response), strict=True):
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)
    number = r"[^\d]*(\d+\.\d+)"
    printed = re.findall(
        rf"^(\w+)\s+Recall{number}[^\n]*?Precision{number}[^\n]*?F1{number}", done.stdout, re.M
    )
    if done.returncode or not printed:
        raise SystemExit(done.stdout + done.stderr)
    return {name: tuple(map(float, values)) for name, *values in printed}


def ours(keys: list[Clusters], responses: list[Clusters]) -> dict[str, tuple[float, ...]]:
    """The same of elmokit, in percent."""
    found = score_clusters(keys, responses)
    return {NAMES[one.label]: (100 * one.recall, 100 * one.precision, 100 * one.f1) for one in found.classes}


def greatest_difference(mine: dict[str, tuple[float, ...]], theirs: dict[str, tuple[float, ...]]) -> float:
    """Between numbers of the same name."""
    return max(abs(a - b) for name in mine for a, b in zip(mine[name], theirs[name], strict=True))


def main() -> None:
    """Score random documents with all three, and write down how far they are apart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("coval", type=Path)
    parser.add_argument("corefud", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    coval = [arguments.python, str(arguments.coval / "scorer.py")]
    corefud = [arguments.python, str(arguments.corefud / "corefud-scorer.py"), "-s", "-a", "exact"]
    corefud += ["-m", "muc", "bcub", "ceafe", "--"]
    apart = {"ns-moosavi/coval": 0.0, "ufal/corefud-scorer": 0.0}
    draw = random.Random(0)
    for _ in range(arguments.rounds):
        keys = [random_clusters(random_mentions(draw), draw) for _ in range(3)]
        responses = [changed(clusters, draw) for clusters in keys]
        mine = ours(keys, responses)
        found = (
            reference(coval, as_conll(keys), as_conll(responses), "conll"),
            reference(corefud, as_corefud(keys), as_corefud(responses), "conllu"),
        )
        for name, theirs in zip(apart, found, strict=True):
            apart[name] = max(apart[name], greatest_difference(mine, theirs))
    lines = [f"{name}: {most:.3f}" for name, most in apart.items()]
    text = (
        f"Recall, precision and F1 of MUC, B³ and CEAFφ4 on {arguments.rounds} times 3 random documents: the "
        f"greatest difference in percentage points, of numbers with two decimals: {'; '.join(lines)}.\n"
    )
    (RESULTS / "coreference-scores.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
