"""Documents to a graph, with small models that have learnt their data by heart."""

import pytest
from click.testing import CliRunner

import elmokit
from elmokit.cli import main
from tests.task_data import WRITERS, quick_settings
from tests.tiny import WORDS, write_folder

TEXT = "Ada left Paris . Grace Hopper saw New York . Ada likes Rome ."


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tagger and a model of relations, and their folders."""
    root = tmp_path_factory.mktemp("graph")
    elmo = str(write_folder(root / "tiny", vocabulary=WORDS))
    found = {}
    changes = {"tagger": (), "relations": ("head.pair_dropout=0", "head.pair_rnn=8")}
    for task, more in changes.items():
        (root / task).mkdir()
        for part in ("train", "dev"):
            WRITERS[task](root / task, part)
        settings = quick_settings(task, *more, "training.epochs=20")
        out = root / f"{task}-model"
        found[task] = (
            elmokit.train(
                task, root / task, encoder=f"words+{elmo}", settings=settings, out=out, tokenizer="whitespace"
            ).model,
            out,
        )
    return found


def build(models, documents, **options):
    (tagger, _), (relations, _) = models["tagger"], models["relations"]
    return elmokit.build_graph(documents, relations=relations, entities=tagger, language="en", **options)


def test_a_graph_of_documents(models):
    graph = build(
        models, [elmokit.Document(id="a", text=TEXT), elmokit.Document(id="b", text="Ada left Paris .")]
    )
    edges = {
        (
            graph.nodes[int(edge.source[1:]) - 1].name,
            edge.relation,
            graph.nodes[int(edge.target[1:]) - 1].name,
        )
        for edge in graph.edges
    }
    assert edges == {("Ada", "left", "Paris"), ("Grace Hopper", "saw", "New York")}
    (ada,) = graph.find("Ada")
    assert [mention.document for mention in ada.mentions] == ["a", "a", "b"]
    assert all(TEXT[one.start : one.end] == one.text for one in ada.mentions[:2])
    (edge,) = graph.edges_of(ada)
    assert [(one.document, one.sentence) for one in edge.evidence] == [
        ("a", "Ada left Paris ."), ("b", "Ada left Paris .")
    ]  # fmt: skip
    assert TEXT[edge.evidence[0].start : edge.evidence[0].end] == "Ada left Paris ."


def test_a_graph_does_not_depend_on_how_documents_are_grouped(models, monkeypatch):
    texts = [TEXT, "Alan saw Rome .", "", "Grace Hopper left New York ."]
    whole = build(models, texts)
    monkeypatch.setattr("elmokit.graph.graph_building._TOGETHER", 1)
    assert str(build(models, texts)) == str(whole)


def test_kinds_are_renamed_and_doubtful_relations_left_out(models):
    graph = build(models, [TEXT], rename={"PER": "Person"})
    assert {node.kind for node in graph.nodes} == {"Person", "LOC"}
    assert build(models, [TEXT], least=1.0).edges == []


def test_no_documents_make_an_empty_graph(models, tmp_path):
    assert build(models, [], out=tmp_path / "g.jsonl").nodes == []
    assert (tmp_path / "g.jsonl").read_text() == ""


def test_interrupted(models, tmp_path):
    def documents():
        yield TEXT * 2000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"interrupted after . documents; no graph was written"):
        build(models, documents(), out=tmp_path / "g.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_the_command(models, tmp_path):
    (tmp_path / "docs.txt").write_text(TEXT + "\n")
    arguments = [
        "graph", str(tmp_path / "docs.txt"), "--relations", str(models["relations"][1]),
        "--entities", str(models["tagger"][1]), "--language", "en", "-o", str(tmp_path / "g.graphml"),
        "--picture", str(tmp_path / "g.png"),
    ]  # fmt: skip
    run = CliRunner().invoke(main, arguments)
    assert run.exit_code == 0, run.output
    assert "5 nodes, 6 mentions, 2 edges" in run.stderr
    assert (tmp_path / "g.png").stat().st_size > 5000
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 1
    assert "exists already; choose another name, or pass --overwrite to replace it" in again.stderr
    assert CliRunner().invoke(main, [*arguments, "--overwrite", "--rename", "PER"]).exit_code == 2
