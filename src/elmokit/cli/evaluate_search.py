"""`elmokit evaluate-search`: how good the results of an index are."""

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command("evaluate-search")
@click.argument("index", type=click.Path())
@click.argument("queries", type=click.Path())
@click.argument("qrels", type=click.Path())
@click.option("--by", metavar="NAMES", help="bm25, dense, late, or several: bm25,dense.  [default: all]")
@options.count_option("--depth", default=100, description="Documents to rank for each query.")
@click.option("--run", type=click.Path(), help="Score this TREC run instead of searching.")
@options.out_option("Write the rankings as a TREC run.", required=False)
@options.json_option
def evaluate_search(
    index: str,
    queries: str,
    qrels: str,
    by: str | None,
    depth: int,
    run: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Measure the results of an index against judgements.

    QUERIES are JSON lines (_id, text), or lines with a name, a tab and a query. QRELS are TREC judgements, or
    lines with query, document and relevance. Prints nDCG@10, MAP, recall@100 and MRR.
    """
    import elmokit

    judgements = elmokit.read_judgements(qrels)
    if run is not None:
        scores = elmokit.score_run(elmokit.read_run(run), judgements)
    else:
        with elmokit.Index.open(index) as opened:
            names = None if by is None else tuple(by.split(","))
            texts = elmokit.read_queries(queries)
            scores, found = elmokit.evaluate_search(opened, texts, judgements, by=names, depth=depth)
        if out is not None:
            elmokit.write_run(out, found)
    print_json(scores) if as_json else click.echo(scores)
