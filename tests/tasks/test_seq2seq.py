"""Translation and replies: formats, pieces, the decoder against its equations, copying, scores, use."""

import json
import lzma
import math
import shutil

import pytest
import torch

import elmokit
from elmokit.model import Packing
from elmokit.tasks import evaluate, load_task, train
from elmokit.tasks.core import Columns, Hidden, find_part, read_data
from elmokit.tasks.reply import ReplyTask, distinct, hits, reply_scores
from elmokit.tasks.seq2seq import (
    LengthLimit,
    Seq2SeqHead,
    Seq2SeqHeadSettings,
    TargetVocabulary,
    TextPair,
    join,
    split,
    text_scores,
)
from elmokit.tasks.translate import TranslateTask
from tests.task_data import quick_settings

pytest.importorskip("sacrebleu")
pytest.importorskip("tokenizers")

DIM = 6
FORMATS, DIALOGUES = TranslateTask.formats, ReplyTask.formats


def read(path, **columns):
    return FORMATS.read(path, tokenize=str.split, columns=Columns(**columns))


def write_lines(folder, part, english=("A dog .", "A cat ."), german=("Ein Hund .", "Eine Katze .")):
    (folder / f"{part}.en").write_text("".join(f"{line}\n" for line in english))
    with lzma.open(folder / f"{part}.de.xz", "wt") as file:
        file.write("".join(f"{line}\n" for line in german))


def test_parallel_files(tmp_path):
    write_lines(tmp_path, "train")
    write_lines(tmp_path, "dev", english=["A dog ."], german=["Ein  Hund ."])
    there = read(tmp_path / "train.en")
    assert there[1] == TextPair((("A", "cat", "."),), "Eine Katze .")
    assert there[1].where == f"{tmp_path}/train.en, line 2"
    back = read(tmp_path / "train.en", text="de", label="en")
    assert back[0] == TextPair((("Ein", "Hund", "."),), "A dog .")
    assert read(tmp_path / "train.de.xz", label="en") == back == read(tmp_path / "train.de.xz")
    data = read_data(FORMATS, tmp_path, tokenize=str.split, columns=Columns("de", "en"))
    assert (data.train, [one.target for one in data.dev]) == (back, ["A dog ."])
    assert data.dev[0].texts == (("Ein", "Hund", "."),)


def test_files_that_do_not_match_up(tmp_path):
    write_lines(tmp_path, "train", english=["A dog .", "A cat .", "A cow ."])
    with pytest.raises(elmokit.DataError, match=r"train.en, line 3: train.de.xz has no such line"):
        read(tmp_path / "train.en")
    write_lines(tmp_path, "train", german=["Ein Hund .", " "])
    with pytest.raises(elmokit.DataError, match=r"train.en, line 2: the target is empty"):
        read(tmp_path / "train.en")
    with pytest.raises(elmokit.DataError, match=r"which files .* Found train in de, en; pass"):
        read(tmp_path / "train.en", label="fr")
    (tmp_path / "train.fr").write_text("Un chien .\nUn chat .\n")
    with pytest.raises(elmokit.DataError, match="which files are source and target"):
        read(tmp_path / "train.en")
    with pytest.raises(elmokit.DataError, match=r"could all be the train part; .* text_column"):
        find_part(tmp_path, "train")


def test_tables_and_json(tmp_path):
    table = tmp_path / "a.tsv"
    table.write_text("A dog .\tEin Hund .\nA cat .\tEine Katze .\n")
    (first, _) = read(table)
    assert first == TextPair((("A", "dog", "."),), "Ein Hund .")
    assert read(table, text="2", label="1")[0] == TextPair((("Ein", "Hund", "."),), "A dog .")
    table.write_text("target\tsource\nEin Hund .\tA dog .\n")
    assert read(table) == [first]
    (tmp_path / "a.csv").write_text('source,target\n"A dog .","Ein Hund ."\n')
    assert read(tmp_path / "a.csv") == [first]
    lines = tmp_path / "a.jsonl"
    lines.write_text(json.dumps({"en": "A dog .", "de": "Ein Hund ."}))
    assert read(lines, text="en", label="de") == [first]
    with pytest.raises(elmokit.DataError, match=r'a.jsonl, line 1: expected an object with .* "source"'):
        read(lines)
    table.write_text("A dog .\tEin Hund .\nA cat .\t\n")
    with pytest.raises(elmokit.DataError, match=r"a.tsv, line 2: the target is empty"):
        read(table)


def test_dialogues(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("Hello !\tHow are you ?\tFine .\n")
    first, second = DIALOGUES.read(path, tokenize=str.split)
    assert first == TextPair((("Hello", "!"),), "How are you ?")
    assert second == TextPair((("Hello", "!"), ("How", "are", "you", "?")), "Fine .")
    assert second.where == f"{path}, line 1, turn 3"
    assert second.last(1).texts == (("How", "are", "you", "?"),)
    (tmp_path / "a.jsonl").write_text(json.dumps({"turns": ["Hello !", "How are you ?", "Fine ."]}))
    assert DIALOGUES.read(tmp_path / "a.jsonl", tokenize=str.split) == [first, second]
    for wrong, message in (
        ("Hello !\tHi .\nBye .\n", r"line 2: found a dialogue of one turn, .*Bye"),
        ("Hello !\t \tBye .\n", "line 1: turn 2 is empty"),
    ):
        path.write_text(wrong)
        with pytest.raises(elmokit.DataError, match=message):
            DIALOGUES.read(path, tokenize=str.split)
    (tmp_path / "a.jsonl").write_text('{"text": "Hello !"}')
    with pytest.raises(elmokit.DataError, match=r'a.jsonl, line 1: expected .* "turns"'):
        DIALOGUES.read(tmp_path / "a.jsonl", tokenize=str.split)


TEXTS = ["Ein Hund (groß) läuft, läuft!", "Ein Hündchen.", "你好，世界。", "don't  do\tit", "Ein Hund."]


@pytest.mark.parametrize("kind", ["subwords", "words", "characters"])
def test_a_text_is_its_pieces(kind):
    vocabulary = TargetVocabulary.fit(kind, TEXTS * 2, 200)
    again = TargetVocabulary(kind, vocabulary.pieces, vocabulary.merges)
    for text in TEXTS:
        ids = again.encode(text)
        assert ids == vocabulary.encode(text)
        assert join(again.pieces[number] for number in ids) == " ".join(text.split())
        assert 0 not in ids
    assert 1 in vocabulary.encode("☃")  # unknown
    assert vocabulary.encode("") == [] == split(" ", kind)
    assert vocabulary.pieces == TargetVocabulary.fit(kind, TEXTS * 2, 200).pieces
    if kind != "subwords":
        assert len(TargetVocabulary.fit(kind, TEXTS * 2, 6)) == 6


def test_missing_libraries(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(elmokit.MissingExtra, match=r"elmokit\[translate\]"):
        TargetVocabulary.fit("subwords", TEXTS, 20)
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu", None)
    with pytest.raises(elmokit.MissingExtra, match=r"sacrebleu.*elmokit\[translate\]"):
        text_scores(["a"], ["a"])


def make_head(pairs, *, turns=1, kind="words", **settings):
    vocabulary = TargetVocabulary.fit(kind, [pair.target for pair in pairs] * 2, 50)
    torch.manual_seed(0)
    sizes = {"decoder": 5, "embedding": 4, "dropout": 0.0, "target": kind} | settings
    return Seq2SeqHead(
        DIM,
        vocabulary,
        limit=LengthLimit(6, 1.0),
        blanks=True,
        turns=turns,
        settings=Seq2SeqHeadSettings(**sizes),
    ).eval()


def hidden_for(items):
    lengths = torch.tensor([len(text) for item in items for text in item.texts])
    torch.manual_seed(1)
    vectors = {text: torch.randn(len(text), DIM) for item in items for text in item.texts}
    whole = torch.cat([vectors[text] for item in items for text in item.texts])
    return Hidden(whole, lengths, Packing.of(lengths))


PAIRS = [
    TextPair((("A", "dog", "runs"),), "Ein Hund läuft"),
    TextPair((("Ada", "runs"),), "Ada läuft und läuft"),
    TextPair((("A", "cat", "of", "Zora"),), "Eine Katze von Zora"),
]


def by_hand(head, pair, hidden, target):
    """Log p of each piece of a target, a step at a time, and the attention rows."""
    decoder, state = head.decoder, None
    m = head.memory(hidden)
    h, g = (x.clone() for x in decoder.start(m.mean(0)).tanh().chunk(2))
    state = [(h, torch.zeros_like(h)), (g, torch.zeros_like(g))]
    logs, rows, before = [], [], 0
    for piece in target:
        x = decoder.embeddings.weight[before if before < len(head.vocabulary) else 1]
        h, c = lstm(decoder.first, x, state[0])
        a = torch.tensor([float(h @ decoder.query.weight.T @ one) for one in m]).softmax(0)
        context = (a[:, None] * m).sum(0)
        g, d = lstm(decoder.second, torch.cat([h, context]), state[1])
        state = [(h, c), (g, d)]
        merged = torch.cat([g, context])
        o = torch.tanh(decoder.output.weight @ merged + decoder.output.bias)
        v = (decoder.embeddings.weight @ o + decoder.bias).softmax(0)
        if decoder.copying is None:
            p = v[piece]
        else:
            k = torch.sigmoid(decoder.copying(torch.cat([merged, x])))[0]
            said = [head._places(pair)["▁" + token] for token in pair.texts[0]]
            copied = sum(share for share, one in zip(a, said, strict=True) if one == piece)
            p = k * copied + ((1 - k) * v[piece] if piece < len(v) else 0)
        logs.append(math.log(float(p)))
        rows.append(a)
        before = piece
    return logs, torch.stack(rows)


def lstm(layer, x, state):
    h, c = state
    z = layer.weight_ih_l0 @ x + layer.bias_ih_l0 + layer.weight_hh_l0 @ h + layer.bias_hh_l0
    i, f, j, o = z.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * j.tanh()
    return o.sigmoid() * c.tanh(), c


@pytest.mark.parametrize("copy", [False, True])
@torch.no_grad()
def test_loss_search_and_attention_by_the_equations(copy):
    pairs = PAIRS[:2]  # Zora and her cat are not in the vocabulary
    head = make_head(pairs, copy=copy, smoothing=0.0, length_penalty=0.0)
    pairs = PAIRS if copy else pairs
    hidden = hidden_for(pairs)
    parts = torch.split(hidden.vectors, hidden.lengths.tolist())
    expected = []
    for pair, part in zip(pairs, parts, strict=True):
        logs, _ = by_hand(head, pair, part, [*head.target_ids(pair), 0])
        expected += logs
    if copy:
        known = head.target_ids(PAIRS[2])
        assert known[-1] == len(head.vocabulary) + 3  # Zora is the fourth token
        assert 1 in known[:-1]  # Katze is unknown
    assert float(head.loss(hidden, pairs)) == pytest.approx(-sum(expected) / len(expected), rel=1e-4)
    for pair, part, output in zip(pairs, parts, head.decode(hidden, pairs), strict=True):
        places = {word: at for word, at in head._places(pair).items() if copy}
        ids = [head.vocabulary.id(piece) for piece in output.pieces]
        ids = [
            places[piece] if number is None else number
            for number, piece in zip(ids, output.pieces, strict=True)
        ]
        logs, rows = by_hand(head, pair, part, [*ids, 0])
        assert output.score == pytest.approx(sum(logs), rel=1e-4)
        torch.testing.assert_close(output.attention, rows[:-1], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(output.attention.sum(1), torch.ones(len(ids)))
        assert "<unk>" not in output.pieces
        assert output.pieces


def test_a_batch_changes_nothing_and_no_source_gives_no_text():
    head = make_head(PAIRS, turns=2)
    items = [*PAIRS, TextPair(((),), ""), TextPair((("A", "cat"), ("runs",)), "")]
    together = head.decode(hidden_for(items), items)
    assert together[3].text == ""
    assert together[3].attention.shape == (0, 0)
    vectors = torch.split(hidden_for(items).vectors, [sum(map(len, item.texts)) for item in items])
    for item, part, output in zip(items, vectors, together, strict=True):
        lengths = torch.tensor([len(text) for text in item.texts])
        (alone,) = head.decode(Hidden(part, lengths, Packing.of(lengths)), [item])
        assert (alone.pieces, [text for text, _ in alone.others]) == (
            output.pieces,
            [text for text, _ in output.others],
        )
        assert alone.score == pytest.approx(output.score, rel=1e-5)
        torch.testing.assert_close(alone.attention, output.attention)


def test_sampling_depends_on_source_and_seed():
    def texts(seed, items):
        head = make_head(PAIRS, temperature=2.0, sampling_seed=seed)
        return [output.text for output in head.decode(hidden_for(items), items)]

    assert texts(1, PAIRS) == texts(1, PAIRS)
    assert texts(1, PAIRS) != texts(2, PAIRS)


def test_bleu_is_that_of_sacrebleu():
    import sacrebleu

    texts = ["Ein Hund läuft über das Gras.", "Zwei Männer stehen da ."]
    references = ["Ein Hund läuft schnell über das Gras.", "Zwei Männer stehen herum."]
    scores = text_scores(texts, references)
    assert 100 * scores.values["bleu"] == pytest.approx(sacrebleu.corpus_bleu(texts, [references]).score)
    assert 100 * scores.values["chrf"] == pytest.approx(sacrebleu.corpus_chrf(texts, [references]).score)
    assert scores.main == "bleu"
    assert 0 <= scores.interval[0] <= scores.interval[1] <= 1
    same = text_scores(["一只狗在跑步呢。"], ["一只狗在跑步呢。"], words="zh")
    assert same.value == pytest.approx(1.0)
    assert same.interval is None


def test_scores_of_replies_by_hand():
    assert distinct([["a", "b", "a", "b"], ["b"]], 2) == pytest.approx(2 / 3)
    assert distinct([[]], 1) == 0
    replies = [["red"], ["green"], ["blue"], ["white"], ["black"], ["grey"]]
    assert hits(replies, replies) == [1.0, 1.0]
    assert hits([["nothing"]] * 6, replies) == [0.0, 0.0]  # equally near: the true one is last
    assert hits([*replies[:3], ["red"], ["red"], ["red"]], replies)[0] == 0.5
    examples = [TextPair(((word, "?"),), f"{word} it is") for word in ("red", "green")]
    scores = reply_scores(examples, ["red it is", "green it is"], words="13a", blanks=True).values
    assert list(scores) == [
        *("chrf", "bleu", "distinct_1", "distinct_2"),
        *("hits_at_1", "hits_at_5", "retrieved_at_1", "retrieved_at_5"),
    ]
    assert scores["distinct_1"] == pytest.approx(4 / 6)
    assert scores["hits_at_1"] == scores["retrieved_at_1"] == 1.0


QUICK = ("head.decoder=32", "head.embedding=16", "training.least_steps=30", "training.epochs=8")


@pytest.fixture(scope="module")
def translator(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("translator") / "out"
    settings = quick_settings("translate", *QUICK, "head.copy=true", "head.vocabulary=60")
    train("translate", folders["translate"], encoder="words", out=out, settings=settings)
    return out


def test_a_little_corpus_is_learnt_by_heart_and_used(translator, tmp_path, folders):
    model = load_task(translator)
    assert evaluate(model, find_part(folders["translate"], "dev")).value > 0.97
    found = model.predict("Ada saw New York .")
    assert (found.text, str(found)) == ("Ada sah Neu York .", "Ada sah Neu York .")
    assert found.source_tokens == ["Ada", "saw", "New", "York", "."]
    assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in found.attention)
    table = found.table().splitlines()
    assert table[0] == found.text
    assert len(table) == 1 + len(found.pieces)
    assert all(row.split()[-1] in found.source_tokens for row in table[1:])
    assert model.predict({"source": "Ada saw Rome .", "begin": "Alan"}).text.startswith("Alan ")
    assert model.predict(["", "Ada left Rome ."])[0].text == ""
    with pytest.raises(elmokit.ConfigError, match='expected a text as "source"'):
        model.predict({"sentence": "Ada"})
    pytest.importorskip("matplotlib")
    found.draw(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000
    with pytest.raises(elmokit.DataError, match="no attention to draw"):
        model.predict("").draw(tmp_path / "b.png")


def test_search_settings_are_changed_when_a_model_is_loaded(translator):
    wide = load_task(translator, changes=["head.beam=3", "head.length_penalty=0"])
    assert len(wide.predict("Ada saw Rome .").alternatives) <= 2
    warm = []
    for seed in (1, 1, 2):
        changes = ["head.temperature=3", f"head.sampling_seed={seed}"]
        warm.append(load_task(translator, changes=changes).predict("Ada .").text)
    assert warm[0] == warm[1] != warm[2]
    with pytest.raises(elmokit.ConfigError, match="beam"):
        load_task(translator, changes=["head.beam=0"])
    with pytest.raises(elmokit.ModelFileError, match="weights and config"):
        load_task(translator, changes=["head.decoder=33"])


def test_damaged_models(translator, tmp_path):
    config = json.loads((translator / "config.json").read_text())
    broken = shutil.copytree(translator, tmp_path / "broken")

    def load(**labels):
        changed = config | {"labels": config["labels"] | labels}
        (broken / "config.json").write_text(json.dumps(changed))
        return load_task(broken)

    for labels, error, message in (
        ({"longest": 10**9}, elmokit.ConfigError, "longest"),
        ({"words": "none"}, elmokit.ConfigError, "words"),
        (
            {"pieces": config["labels"]["pieces"][::-1]},
            elmokit.ModelFileError,
            "the pieces of the model begin",
        ),
        ({"pieces": config["labels"]["pieces"][:-1]}, elmokit.ModelFileError, "weights and config.json"),
    ):
        with pytest.raises(error, match=message):
            load(**labels)
    for merges in ("a", "a zzz", 7):
        with pytest.raises(elmokit.ModelFileError, match="a merge of the model"):
            load(merges=merges).predict({"source": "Ada", "begin": "Alan"})


def test_names_are_copied(tmp_path):
    names = ["Zora", "Quin", "Xeno", "Yrsa", "Wim", "Vito", "Ulf", "Tove", "Sven", "Rafi", "Pia", "Olaf"]
    rows = {"train": names, "dev": ["Nils", "Momo"]}
    for part, some in rows.items():
        (tmp_path / f"{part}.tsv").write_text("".join(f"I saw {name} .\tIch sah {name} .\n" for name in some))
    settings = quick_settings(
        "translate", *QUICK, "head.copy=true", "head.target=words", "training.epochs=15", "training.batch=4"
    )
    trained = train("translate", tmp_path, encoder="words", out=tmp_path / "out", settings=settings)
    assert not {"▁Zora", "▁Nils"} & set(trained.model.task.pieces)
    assert [one.text for one in trained.model.predict(["I saw Nils .", "I saw Momo ."])] == [
        "Ich sah Nils .",
        "Ich sah Momo .",
    ]
