"""A tiny BERT with random weights, made here: nothing is downloaded."""

import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import elmokit
from elmokit.encoders import TunableEncoder, open_encoder
from elmokit.encoders.bert import middles, overlapping_spans

ROOM = 10  # positions of the tiny model without its two marks


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    transformers = pytest.importorskip(
        "transformers", reason="pip install 'elmokit[transformers]' to test BERT encoders"
    )
    folder = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "riv", "##er", "##bank"]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=ROOM + 2).save_pretrained(
        folder
    )
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=ROOM + 2,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    return folder


SENTENCES = [["the", "riverbank"], [], ["cat"], ["the", "river", "the", "cat"] * 10]


@pytest.fixture(params=["bert", "bert-mean"])
def encoder(request, folder):
    return open_encoder(f"{request.param}:{folder}")


def test_contract(encoder):
    assert (encoder.dim, encoder.num_layers) == (8, 3)
    layers = encoder.encode(SENTENCES)
    assert [tuple(one.shape) for one in layers] == [(3, len(sentence), 8) for sentence in SENTENCES]
    for sentence, together in zip(SENTENCES, layers, strict=True):
        torch.testing.assert_close(encoder.encode([sentence])[0], together)
    assert isinstance(encoder, TunableEncoder)
    assert [len(stage) for stage in encoder.module.stages()] == [5, 16, 16]


def test_pieces_become_words(folder):
    first, mean = open_encoder(f"bert:{folder}"), open_encoder(f"bert-mean:{folder}")
    model, ids = first.module.model, torch.tensor([[2, 5, 7, 8, 9, 3]])  # the riv ##er ##bank
    with torch.no_grad():
        hidden = torch.cat(model(ids, output_hidden_states=True).hidden_states)  # (3, 6, 8)
    sentence = [["the", "riverbank"]]
    torch.testing.assert_close(first.encode(sentence)[0], hidden[:, [1, 2]])
    expected = torch.stack([hidden[:, 1], hidden[:, 2:5].mean(dim=1)], dim=1)
    torch.testing.assert_close(mean.encode(sentence)[0], expected)
    assert first.fingerprint() != mean.fingerprint()


def test_long_text_is_read_in_windows_to_its_end(folder):
    encoder = open_encoder(f"bert:{folder}")
    (layers,) = encoder.encode([["cat"] * 25])
    (window,) = encoder.encode([["cat"] * ROOM])
    torch.testing.assert_close(layers[:, 0], window[:, 0])
    torch.testing.assert_close(layers[:, -1], window[:, -1])
    assert layers.abs().sum(dim=(0, 2)).min() > 0


def test_a_word_longer_than_the_model_is_told_of(folder, caplog):
    (layers,) = open_encoder(f"bert-mean:{folder}").encode([["the", "cat", "riv" + "er" * 20, "the"]])
    assert layers.shape == (3, 4, 8)
    assert "a word has more pieces than the model has positions" in caplog.text


def test_saved_and_opened_again(encoder, tmp_path):
    again = open_encoder(encoder.save(tmp_path / "saved"))
    assert again.fingerprint() == encoder.fingerprint()
    torch.testing.assert_close(again.encode(SENTENCES)[0], encoder.encode(SENTENCES)[0])


def saved_as(folder, target, change):
    """A copy of the model after `change(model, tokenizer)`."""
    encoder = open_encoder(f"bert:{folder}")
    change(encoder.module.model, encoder.module.tokenizer)
    encoder.save(target)
    return open_encoder(f"bert:{target}")


def test_fingerprint_follows_settings_and_tokenizer(folder, tmp_path):
    before = open_encoder(f"bert:{folder}")
    first = before.fingerprint()
    before.encode(SENTENCES)
    assert before.fingerprint() == first
    heads = saved_as(folder, tmp_path / "heads", lambda m, _: m.config.update({"num_attention_heads": 4}))
    assert heads.fingerprint() != first

    cased = shutil.copytree(folder, tmp_path / "cased")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.BertTokenizerFast(
        str(folder / "vocab.txt"), model_max_length=ROOM + 2, do_lower_case=False
    )
    tokenizer.save_pretrained(cased)
    assert open_encoder(f"bert:{cased}").fingerprint() != first


def test_fingerprint_without_a_pooler(folder, tmp_path):
    transformers = pytest.importorskip("transformers")
    shutil.copytree(folder, tmp_path / "lm")
    config = transformers.BertConfig.from_pretrained(folder)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "lm")
    assert len({open_encoder(f"bert:{tmp_path / 'lm'}").fingerprint() for _ in range(2)}) == 1


def test_half_precision_is_read_as_float32(folder, tmp_path):
    encoder = saved_as(folder, tmp_path / "half", lambda model, _: model.bfloat16())
    assert encoder.encode(SENTENCES)[0].dtype == torch.float32
    assert encoder.fingerprint()


def test_positions_that_roberta_does_not_use(tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = ["<s>", "<pad>", "</s>", "<unk>", "cat"]
    model = tokenizers.models.WordLevel({word: row for row, word in enumerate(words)}, unk_token="<unk>")
    raw = tokenizers.Tokenizer(model)
    raw.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<pad>", unk_token="<unk>"
    ).save_pretrained(tmp_path)
    config = transformers.RobertaConfig(
        vocab_size=5, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=14, pad_token_id=1,
    )  # fmt: skip
    transformers.RobertaModel(config).save_pretrained(tmp_path)
    for length in (10, 11, 30):
        assert open_encoder(f"bert:{tmp_path}").encode([["cat"] * length])[0].shape == (2, length, 8)


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_devices(folder, device):
    assert open_encoder(f"bert:{folder}", device=device).encode(SENTENCES)


def test_a_slow_tokenizer_is_refused(folder, monkeypatch):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "is_fast", False)
    with pytest.raises(elmokit.ModelFileError, match="slow ones, which do not say which word"):
        open_encoder(f"bert:{folder}")


def test_no_such_folder():
    pytest.importorskip("transformers")
    with pytest.raises(elmokit.ModelFileError, match="nowhere is not a folder"):
        open_encoder("bert:nowhere")


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(5, 12))
def test_windows_cover_every_word_once_and_fit(sizes, room):
    spans = overlapping_spans(sizes, room)
    assert all(sum(sizes[start:end]) <= room for start, end in spans)
    kept = middles(spans)
    assert [word for words in kept for word in words] == list(range(len(sizes)))
    assert all(
        start <= words.start and words.stop <= end for (start, end), words in zip(spans, kept, strict=True)
    )
