"""From raw text to a folder that transformers opens: prepare, split into pieces, train, evaluate, write.

OUT/config.json, model.safetensors, tokenizer.json, tokenizer_config.json, README.md, curve.png    the model
OUT/training/corpus, tokenizer.json, pieces, checkpoints, metrics.jsonl                            the run
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import move_files, remove_folder, write_text
from elmokit.corpus import PreparedCorpus, PrepareSettings
from elmokit.errors import ConfigError, MissingExtra
from elmokit.formats import WORDS_SETTING
from elmokit.kernels import training_engine_name, training_precision
from elmokit.pretraining.bert.bert_card import bert_card, draw_losses
from elmokit.pretraining.bert.bert_job import BertJob
from elmokit.pretraining.bert.bert_recipe import BertRecipe
from elmokit.pretraining.bert.masked_network import MaskedScores, new_bert, set_later_dropout
from elmokit.pretraining.bert.word_pieces import (
    CLS,
    CONTINUES,
    MASK,
    PAD,
    SEP,
    SPECIAL_PIECES,
    UNK,
    PieceText,
    train_pieces,
    write_pieces,
)
from elmokit.pretraining.core import (
    RecipeChoice,
    RunRecord,
    Session,
    open_corpus,
    run_session,
    settle_record,
)
from elmokit.training import Loop, Plan, Position, Schedule

_EXPLODED = 2.0  # above the usual loss
_TOKENIZER, _PIECES = "tokenizer.json", "pieces"


def pretrain_bert(
    sources: str | Path | Sequence[str | Path] | None = None,
    *,
    out: str | Path,
    minutes: float | None = None,
    tokens: int | None = None,
    epochs: float | None = None,
    language: str | None = None,
    preparation: PrepareSettings | Mapping[str, Any] | None = None,
    recipe: str | Path | BertRecipe | None = None,
    size: str | None = None,
    changes: Mapping[str, Any] | None = None,
    resume: bool = False,
    workers: int | None = None,
    device: str = "cpu",
    command: str = "",
    progress: bool = False,
) -> list[MaskedScores]:
    """Train a BERT on text; the arguments are those of `pretrain`.

    Returns:
        What was measured on the held-out text at the end. Of several processes only the leading one gets any.
    """
    texts = [] if sources is None else [sources] if isinstance(sources, str | Path) else list(sources)
    if not isinstance(preparation, PrepareSettings):
        preparation = dict(preparation or {}) | ({} if language is None else {"language": language})
    with run_session(out, device, resume=resume, progress=progress) as session:
        record, _ = settle_record(
            *(session.folder, RecipeChoice(BertRecipe, recipe, size, changes or {}), texts, preparation),
            resume=resume,
            budget={"minutes": minutes, "tokens": tokens, "epochs": epochs},
            given={"command": command, "architecture": "bert"},
        )
        corpus = open_corpus(record, session.folder, session.processes, workers=workers, again=bool(texts))
        if session.processes.leads:
            record.save(session.folder)
        return _BertRun.start(record, corpus, session).complete()


@dataclass(frozen=True, kw_only=True)
class _BertRun:
    """A run, with everything that it needs."""

    record: RunRecord
    corpus: PreparedCorpus
    session: Session
    tokenizer: Any  # of tokenizers, untyped
    model: Any  # of transformers, untyped
    job: BertJob
    loop: Loop

    @classmethod
    def start(cls, record: RunRecord, corpus: PreparedCorpus, session: Session) -> "_BertRun":
        """Make the vocabulary, the text as pieces and the model."""
        recipe: BertRecipe = record.recipe
        tokenizer = _open_tokenizer(corpus, recipe, session)
        model = new_bert(recipe, tokenizer.get_vocab_size()).to(session.device)
        pieces = session.folder / _PIECES
        continues = np.zeros(tokenizer.get_vocab_size(), np.bool_)
        for piece, number in tokenizer.get_vocab().items():
            continues[number] = piece.startswith(CONTINUES)
        precision = training_precision(session.device.type)
        job = BertJob(
            *(model, PieceText.open(pieces / "train"), PieceText.open(pieces / "heldout"), recipe, continues),
            processes=session.processes,
            precision=precision,
        )
        schedule = Schedule(peak=recipe.learning_rate, warmup=recipe.warmup, decay=recipe.decay)
        loop = Loop(
            *(job, session.folder, Plan(budget=record.budget, schedule=schedule, exploded=_EXPLODED)),
            settings=recipe.to_dict() | {"corpus": corpus.fingerprint},
            processes=session.processes,
            engine=training_engine_name(precision, model.bert.embeddings.word_embeddings.weight),
            say=session.display.say,
        )
        return cls(
            record=record,
            corpus=corpus,
            session=session,
            tokenizer=tokenizer,
            model=model,
            job=job,
            loop=loop,
        )

    def complete(self) -> list[MaskedScores]:
        """Train to the end, evaluate and write the model."""
        self.session.train(self.loop, self._write)
        if not self.session.processes.leads:
            return []
        found = self._write()
        return [] if found is None else [found]

    def _write(self) -> MaskedScores | None:
        """Write the model as it is now, its card and its learning curve; return what was measured."""
        from transformers import PreTrainedTokenizerFast
        from transformers.utils import logging as transformers_logging

        out, folder, at = self.session.out, self.session.folder, self.loop.position
        scores = self.job.measure()
        draft = folder / "model"
        remove_folder(draft)
        transformers_logging.disable_progress_bar()
        set_later_dropout(self.model.config)
        setattr(self.model.config, WORDS_SETTING, self.corpus.tokenizer.to_dict())
        self.model.save_pretrained(draft)
        PreTrainedTokenizerFast(
            tokenizer_object=self.tokenizer,
            model_max_length=self.record.recipe.length,
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
            **{
                f"{name}_token": SPECIAL_PIECES[piece]
                for name, piece in (("pad", PAD), ("unk", UNK), ("cls", CLS), ("sep", SEP), ("mask", MASK))
            },
        ).save_pretrained(draft)
        write_text(draft / "README.md", self._card(at, scores))
        move_files(draft, out, last="config.json")
        try:
            draw_losses(folder, out / "curve.png")
        except MissingExtra as missing:
            self.session.display.say(str(missing))
        return scores

    def _card(self, at: Position, scores: MaskedScores | None) -> str:
        return bert_card(
            *(self.session.out.name, self.model, self.corpus, self.record),
            position=at,
            progress=self.loop.progress,
            scores=scores,
        )


def _open_tokenizer(corpus: PreparedCorpus, recipe: BertRecipe, session: Session) -> Any:  # noqa: ANN401
    """Return the tokenizer of a run; the leading process makes it, and the text as pieces, once."""
    path, pieces = session.folder / _TOKENIZER, session.folder / _PIECES
    if session.processes.leads and not path.exists():
        session.display.say("making the vocabulary of pieces")
        tokenizer = train_pieces(corpus, recipe.vocabulary)
        remove_folder(pieces)
        write_pieces(corpus, tokenizer, pieces)
        write_text(path, tokenizer.to_str())  # last: while it is there, both are
    session.processes.wait()
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra("tokenizers", "transformers", "pretraining a BERT") from error
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:
        raise ConfigError(f"{path} is damaged ({error}); delete it and resume the run") from error
