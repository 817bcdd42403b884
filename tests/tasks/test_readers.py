"""Labelled files: each format, and what is said of those that are wrong."""

import gzip
import lzma
import random

import pytest

import elmokit
from elmokit.tasks import find_task
from elmokit.tasks.core import TaskData, check_labels, find_part, read_data
from elmokit.tasks.tagger import TaggedText
from elmokit.tasks.tagger.data import scheme_of

COLUMNS = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n\nPeter NNP I-NP I-PER"
CONLLU = """# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\t_\t_\t_\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t_\t_\t_\t_
2.1\tsubject\t_\tPRON\t_\t_\t_\t_\t_\t_

"""
CASES = [
    ("tagger", "a.txt", COLUMNS, [("EU rejects", "I-ORG O", ""), ("Peter", "I-PER", "")]),
    ("tagger", "a.txt", "10\u00a0000 B-NUM\n", [("10\u00a0000", "B-NUM", "")]),
    ("tagger", "a.conllu", CONLLU.replace("\n\n", "\n \n") + "1\tmar\t_\tNOUN" + "\t_" * 6,
     [("vamos nos", "VERB PRON", ""), ("mar", "NOUN", "")]),
    ("tagger", "a.tsv", "New York\tB-LOC\n!\tO\n", [("New York !", "B-LOC O", "")]),
    ("tagger", "a.conllu", CONLLU, [("vamos nos", "VERB PRON", "")]),
    ("classifier", "a.tsv", "label\ttext\npos\tgood film\n\nneg\tbad\n",
     [("good film", "", "pos"), ("bad", "", "neg")]),
    ("classifier", "a.tsv", 'pos\tsay "so\n', [('say "so', "", "pos")]),
    ("classifier", "a.csv", 'text,id,label\n"one, two",3,x|y\n', [("one, two", "", "x y")]),
    ("classifier", "a.csv", 'label,text\nx,"one\ntwo ""so"""\ny,three\n',
     [('one two "so"', "", "x"), ("three", "", "y")]),
    ("classifier", "a.tsv", "label\ttext\n\tno label\n", [("no label", "", "")]),
    ("classifier", "a.ft", "__label__x __label__y some text\n", [("some text", "", "x y")]),
    ("classifier", "a.at", "a mail@home .@neutral\n", [("a mail@home .", "", "neutral")]),
    ("classifier", "a.trec", "DESC:manner How so ?\n", [("How so ?", "", "DESC")]),
    ("classifier", "a.trec-fine", "DESC:manner How so ?\n", [("How so ?", "", "DESC:manner")]),
    ("classifier", "a.jsonl", '{"text": "a b", "label": 1}\n{"text": "c", "labels": ["x", "y"]}\n',
     [("a b", "", "1"), ("c", "", "x y")]),
    ("classifier", "a.jsonl", '{"text": "a", "label": ["x"]}\n{"text": "b", "labels": "pos"}\n'
     '{"text": "c", "labels": []}\n{"text": "d", "label": null}',
     [("a", "", "x"), ("b", "", "pos"), ("c", "", ""), ("d", "", "")]),
    ("classifier", "a.jsonl", '{"text": "a", "label": "x", "tags": "of something else"}', [("a", "", "x")]),
    ("tagger", "a.jsonl", '{"tokens": ["a", "b"], "tags": ["O", "B-X"]}\n', [("a b", "O B-X", "")]),
    ("intent", "a.jsonl", '{"text": "go to New York", "intent": "GO", "slots": {"city": "New York"}}\n',
     [("go to New York", "O O B-city I-city", "GO")]),
]  # fmt: skip


def formats(task):
    return find_task(task).task_type.formats


def read(path, task, format=None):
    if path.suffix in (".at", ".trec", ".trec-fine"):
        format = path.suffix[1:]
    return formats(task).read(path, tokenize=str.split, format=format)


def parts(example):
    """Tokens, tags and labels, as far as the example has them."""
    slots, intent = getattr(example, "slots", example), getattr(example, "intent", example)
    return tuple(
        " ".join(x) for x in (slots.tokens, getattr(slots, "tags", ()), getattr(intent, "labels", ()))
    )


@pytest.mark.parametrize(("task", "name", "content", "expected"), CASES)
def test_formats(tmp_path, task, name, content, expected):
    (tmp_path / name).write_text(content)
    assert [parts(example) for example in read(tmp_path / name, task)] == expected


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_packed(tmp_path, ending, pack):
    path = tmp_path / f"train.bio{ending}"
    path.write_bytes(pack(b"a\tO\n"))
    assert read(path, "tagger")[0].tokens == ("a",)


def test_places_are_told(tmp_path):
    (tmp_path / "a.txt").write_text(COLUMNS)
    assert [e.where for e in read(tmp_path / "a.txt", "tagger")] == [
        f"{tmp_path}/a.txt, line 3",
        f"{tmp_path}/a.txt, line 7",
    ]


@pytest.mark.parametrize(
    ("task", "name", "content", "message"),
    [
        ("tagger", "a.txt", "EU O\nrejects\n", "a.txt, line 2: expected a token and its tag in 2"),
        ("tagger", "a.txt", "a\tO\nb\t\n", "a.txt, line 2: expected a token and its tag"),
        ("tagger", "a.conllu", "1\tword\n", "a.conllu, line 1: expected a token and its tag in 10"),
        ("tagger", "a.txt", "", "a.txt: found no example, expected labelled lines"),
        ("tagger", "a.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}',
         "expected a tag for each token, found 2"),
        ("classifier", "a.tsv", "pos\tgood\nbad\n", "a.tsv, line 2: expected a label and a text in 2"),
        ("classifier", "a.tsv", "pos\tgood\nneg\tone\ttwo\n", "line 2: expected a label and a text in 2"),
        ("classifier", "a.csv", "label,text\npos,good, but long\n", "' but long'] in 3; label the line, put"),
        ("classifier", "a.csv", 'x,one\ny,"two\nz,three\n', "a.csv, line 2: is no CSV (unexpected end of"),
        ("classifier", "a.at", "no label\n", "a.at, line 1: expected text@label, found 'no label'"),
        ("classifier", "a.trec", "How so ?\n", "a.trec, line 1: expected COARSE:fine and a question"),
        ("classifier", "a.jsonl", "{not json\n", "line 1: '{not json' is no JSON"),
        ("classifier", "a.jsonl", '{"label": "x"}\n', 'expected an object with "text" or "tokens"'),
        ("classifier", "a.jsonl", '{"text": ["a", "b"]}\n', 'expected an object with "text" or "tokens"'),
        ("classifier", "a.jsonl", '{"tokens": "the cat"}\n', 'a list of strings as "tokens", found'),
        ("classifier", "a.jsonl", '{"text": "a", "label": {"x": 1}}\n', "expected a label or a list of them"),
        ("tagger", "a.jsonl", '{"tokens": ["a"], "tags": [3]}\n', 'a list of strings as "tags", found [3]'),
        ("intent", "a.jsonl", '{"tokens": ["a"], "tags": ["O"], "labels": ["x", "y"]}',
         "expected one intent, found x, y"),
        ("intent", "a.jsonl", '{"tokens": ["a"], "tags": ["O"]}', "expected one intent, found none"),
    ],
)  # fmt: skip
def test_lines_that_are_not_labelled(tmp_path, task, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(elmokit.DataError) as refused:
        read(tmp_path / name, task)
    assert message in str(refused.value)


def test_a_slot_that_is_not_in_the_text_is_told_of(tmp_path, caplog):
    (tmp_path / "a.jsonl").write_text('{"text": "go", "intent": "GO", "slots": {"city": "Rome"}}')
    (example,) = read(tmp_path / "a.jsonl", "intent")
    assert example.slots.tags == ("O",)
    assert "a.jsonl, line 1: slot 'city' is left out: its value 'Rome' is not in the text" in caplog.text


def test_three_files_of_different_length(tmp_path):
    for name, content in (("seq.in", "a b\nc\n"), ("seq.out", "O O\n"), ("label", "x\ny\n")):
        (tmp_path / name).write_text(content)
    with pytest.raises(
        elmokit.DataError,
        match=r"seq.in, line 2: .* and label do not have the same number of lines",
    ):
        read(tmp_path, "intent")
    (tmp_path / "label").unlink()
    with pytest.raises(elmokit.DataError, match=r"has no label, expected seq.in, seq.out and label"):
        read(tmp_path, "intent")


def test_endings_that_tell_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("text\n")
    with pytest.raises(elmokit.ConfigError, match=r"the ending '.txt' does not tell .* pass format='NAME'"):
        read(tmp_path / "a.txt", "classifier")
    with pytest.raises(elmokit.ConfigError, match="format 'cvs' is not known"):
        read(tmp_path / "a.txt", "classifier", format="cvs")


def sentences(*rows):
    return [TaggedText(tuple("abcdef"[: len(row.split())]), tuple(row.split()), row) for row in rows]


@pytest.mark.parametrize(
    ("rows", "scheme"),
    [
        (["B-X I-X O", "B-X B-X"], "BIO"),
        (["I-X I-X O", "I-X B-X"], "IOB1"),
        (["B-X E-X O", "S-X"], "BIOES"),
        (["B-X M-X E-X O", "S-X"], "BMES"),
        (["NOUN VERB"], "plain"),
        (["B-STREET I-STREET B-CITY"], "BIO"),  # every token is in a span
        (["B-NN E-NN S-VV"], "BIOES"),
        (["O O"], "BIO"),
    ],
)
def test_schemes_are_told_by_the_data(rows, scheme):
    assert scheme_of(sentences(*rows)) == scheme
    assert scheme_of(sentences(*rows), scheme) == scheme


def test_parts_of_speech_that_have_an_o_among_them(caplog):
    assert scheme_of(sentences("N O V", "O")) == "plain"
    assert "no tag looks like B-PER, so the tags are not read as spans" in caplog.text
    with pytest.raises(elmokit.DataError, match="tag 'B' is of no scheme"):
        scheme_of(sentences("B I O"))


def test_schemes_mixed_up():
    with pytest.raises(elmokit.DataError, match="I-X I-X O: the tags I-X I-X O are not of the scheme BIO"):
        scheme_of(sentences("B-X I-X O", "B-X O", "I-X I-X O"))
    with pytest.raises(elmokit.DataError, match="are not of the scheme BMES, nor are those of 1 more of 2"):
        scheme_of(sentences("B-X I-X O", "B-X O"), "BMES")
    with pytest.raises(elmokit.DataError, match="tag 'PER' is of no scheme"):
        scheme_of(sentences("B-X O", "PER O"))


def test_a_slip_is_told_of_and_read(caplog):
    assert scheme_of(sentences(*["B-X I-X O"] * 30, "I-X O")) == "BIO"
    assert "not quite of the scheme BIO (1 of 31 sentences)" in caplog.text


def test_labels_that_are_new():
    labels = [("f, line 7", ["X"])]
    check_labels(labels, ["X"])
    with pytest.raises(
        elmokit.DataError, match="f, line 7: label 'X' does not occur in the training data, which has Y"
    ):
        check_labels(labels, ["Y"])


def test_parts_of_a_folder(tmp_path):
    for name in ("en_ewt-ud-train.conllu", "x-dev.txt", "dev.txt", "README.md"):
        (tmp_path / name).write_text("")
    assert find_part(tmp_path, "train").name == "en_ewt-ud-train.conllu"
    assert find_part(tmp_path, "dev").name == "dev.txt"  # it is called so and nothing else
    assert find_part(tmp_path, "test") is None
    (tmp_path / "valid.txt").write_text("")
    with pytest.raises(elmokit.DataError, match=r"dev.txt, valid.txt could all be the dev part"):
        find_part(tmp_path, "dev")


def test_folders_without_what_is_needed(tmp_path):
    with pytest.raises(elmokit.DataError, match="has no file named train, found nothing"):
        read_data(formats("tagger"), tmp_path, tokenize=str.split)
    (tmp_path / "train.txt").write_text("a O\n")
    with pytest.raises(
        elmokit.DataError, match="expected enough examples to hold some out for dev, found 1; pass a dev file"
    ):
        read_data(formats("tagger"), tmp_path, tokenize=str.split)
    (tmp_path / "dev.txt").write_text("\n")
    with pytest.raises(elmokit.DataError, match=r"dev.txt: found no example"):
        read_data(formats("tagger"), tmp_path, tokenize=str.split)


def test_a_dev_part_is_set_apart_and_always_the_same(tmp_path):
    (tmp_path / "all.tsv").write_text("".join(f"x\ttext {n}\n" for n in range(50)))
    random.seed(1)
    first, again = (
        read_data(formats("classifier"), tmp_path / "all.tsv", tokenize=str.split) for _ in range(2)
    )
    assert first == again
    assert (len(first.train), len(first.dev)) == (45, 5)
    assert {e.tokens for e in first.train}.isdisjoint({e.tokens for e in first.dev})


def test_shares_contain_each_other():
    data = TaskData([TaggedText((str(n),), ()) for n in range(100)], [])
    small, large = ({e.tokens for e in data.share(share).train} for share in (0.1, 0.5))
    assert (len(small), len(large)) == (10, 50)
    assert small < large
    assert data.share(1) is data


def test_running_text_is_no_data_for_a_tagger(tmp_path):
    (tmp_path / "text.txt").write_text("The bank raised its rates .\nThe river rose .\n")
    with pytest.raises(elmokit.DataError, match=r"line 2: .* in 6 columns, as in the line before, found 4"):
        elmokit.train("tagger", tmp_path / "text.txt", encoder="words", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("task", ["tagger", "classifier", "intent", "reading"])
def test_a_file_that_is_not_there(task, tmp_path):
    with pytest.raises(elmokit.DataError, match="nofile does not exist"):
        elmokit.train(task, tmp_path / "nofile", encoder="words", out=tmp_path / "out")
