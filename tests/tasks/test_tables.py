"""Tables of texts and labels: which columns they are is said, never guessed."""

import pytest

import elmokit
from elmokit.tasks import find_task
from elmokit.tasks.core import Columns


def read(path, **columns):
    """Text and label of each example."""
    formats = find_task("classifier").task_type.formats
    examples = formats.read(path, tokenize=str.split, columns=Columns(**columns))
    return [(" ".join(example.tokens), " ".join(example.labels)) for example in examples]


@pytest.mark.parametrize(
    ("name", "content", "first_row"),
    [
        ("a.csv", "label,sentence\npos,good\n", "'label', 'sentence'"),
        ("a.csv", "id,message,category\n1,hello,x\n", "'id', 'message', 'category'"),
        ("a.tsv", "pos\t7\t1005\tgood\n", "'pos', '7', '1005', 'good'"),
        ("a.csv", "sentiment,review\npos,good\nneg,bad\npos,fine\n", "'sentiment', 'review'"),
        ("a.csv", "sentiment,review\npos,a good film\nneg,a bad one\n", "'sentiment', 'review'"),
        ("a.csv", "review,sentiment\ngood,pos\nbad,neg\nfine,pos\n", "'review', 'sentiment'"),
        ("a.csv", "so good,pos\nso bad,neg\nso fine,pos\n", "'so good', 'pos'"),  # the label is last
    ],
)
def test_columns_that_nobody_named_are_listed(tmp_path, name, content, first_row):
    (tmp_path / name).write_text(content)
    with pytest.raises(elmokit.DataError) as refused:
        read(tmp_path / name)
    assert "line 1: which column is the text, and which the label? " in str(refused.value)
    assert f"The first row has {first_row}; pass text_column=NAME and label" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.csv", "id,Message,Category\n1,so good,x\n", {"text": "message", "label": "Category"}),
        ("a.csv", "label,Message,Category\n1,so good,x\n", {"text": "Message", "label": "Category"}),
        ("a.csv", "message,label,day\nso good,x,1\n", {"text": "message"}),
        ("a.csv", "category,message\nx,so good\n", {"text": "message"}),  # the other is the other one
        ("a.csv", "message,category\nso good,x\n", {"label": "category"}),
        ("a.tsv", "gj04\tx\t*\tso good\n", {"text": "4", "label": "2"}),  # there is no header
        ("a.tsv", "so good\tx\n", {"label": "2"}),
        ("a.csv", "2019,2020\nso good,x\n", {"text": "2019", "label": "2020"}),
        (
            "a.jsonl",
            '{"message": "so good", "category": "x", "label": 3}',
            {"text": "message", "label": "category"},
        ),
    ],
)
def test_columns_are_named(tmp_path, name, content, columns):
    (tmp_path / name).write_text(content)
    assert read(tmp_path / name, **columns) == [("so good", "x")]


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("a.csv", {"text": "massage"}, "text_column='massage' is not one of its columns. The first row has"),
        ("a.csv", {"text": "message"}, "which column is the text, and which the label? The first row has"),
        ("a.csv", {"text": "4", "label": "1"}, "text_column='4' is not one of its columns"),
        ("a.csv", {"text": "message", "label": "message"}, "which column is the text, and which the label?"),
        ("a.csv", {"text": "message", "label": "id"}, None),
        (
            "a.jsonl",
            {"text": "message", "label": "class"},
            "label_column='class' is not among its keys, mess",
        ),
        ("a.ft", {"text": "message"}, "which has no columns; leave out text_column and label_column"),
    ],
)
def test_columns_that_are_not_there(tmp_path, name, columns, message):
    content = {
        ".csv": "id,message,category\n1,so good,x\n",
        ".jsonl": '{"message": "a"}',
        ".ft": "__label__x a",
    }
    path = tmp_path / name
    path.write_text(content[path.suffix])
    if message is None:
        assert read(path, **columns) == [("so good", "1")]
        return
    with pytest.raises(elmokit.ElmoError) as refused:
        read(path, **columns)
    assert message in str(refused.value)


def test_a_header_over_columns_that_are_numbered(tmp_path, caplog):
    (tmp_path / "A.CSV").write_text("id,message,category\n1,so good,x\n2,so bad,y\n3,too bad,y\n")
    assert [label for _, label in read(tmp_path / "A.CSV", text="2", label="3")] == ["x", "y", "y"]
    assert "line 1: taken for a header, since 'category' is the label of no other line" in caplog.text


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("label;text\nx;good, but long\ny;bad; or worse\n", None),  # a row is wrong, the delimiter is clear
        ("label;text\nx;good, but long\n", "semicolons"),
        ('label\ttext\nx\t"good,\tbut\nlong"\n', "tabs"),
        ("label,text\nx,good; but\n" + "x,long\n" * 200, ""),
    ],
)
def test_the_delimiter_of_a_csv_is_found_and_said(tmp_path, caplog, content, delimiter):
    (tmp_path / "a.csv").write_text(content)
    if delimiter is None:
        with pytest.raises(elmokit.DataError, match=r"line 3: expected a label and a text in 2 columns"):
            read(tmp_path / "a.csv")
        return
    assert read(tmp_path / "a.csv")[0][0].startswith("good")
    assert (f"a.csv: its columns are separated by {delimiter}" in caplog.text) == bool(delimiter)


def test_cells_quoted_as_in_csv(tmp_path):
    (tmp_path / "a.tsv").write_text('label\ttext\nx\t"so ""good"""\ny\t"so" bad\nz\t"all of it"\n')
    texts = [text for text, _ in read(tmp_path / "a.tsv")]
    assert texts == ['so "good"', '"so" bad', '"all of it"']  # only what no writer of plain text would double
