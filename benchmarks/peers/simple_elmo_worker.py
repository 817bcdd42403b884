"""simple_elmo 0.9.2: bilm-tf's code brought to TensorFlow 2, with its training graph and checkpoints."""

import json
import os
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import logging

import numpy as np
import tensorflow as tf
from simple_elmo import ElmoModel
from simple_elmo.training import LanguageModel
from worker import serve

tf.compat.v1.disable_eager_execution()
logging.disable(logging.WARNING)  # of old calls in its code


def write_checkpoint(folder: str, options: dict[str, Any], vocabulary: list[str], seed: int) -> None:
    """Write a training run's folder: options, vocabulary, and a checkpoint with the optimizer's variables."""
    tf.compat.v1.reset_default_graph()
    tf.compat.v1.set_random_seed(seed)
    target = Path(folder)
    (target / "options.json").write_text(json.dumps(options), encoding="utf-8")
    (target / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary), encoding="utf-8")
    with tf.compat.v1.variable_scope("lm"):
        model = LanguageModel(options, True)
    optimizer = tf.compat.v1.train.AdagradOptimizer(0.2, initial_accumulator_value=1.0)
    step = tf.compat.v1.train.create_global_step()
    gradients = optimizer.compute_gradients(model.total_loss)
    optimizer.apply_gradients(gradients, global_step=step)
    with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        for variable in tf.compat.v1.trainable_variables():  # biases start at zero: make every number count
            session.run(variable.assign_add(tf.random.uniform(variable.shape, -0.1, 0.1, seed=seed)))
        saver = tf.compat.v1.train.Saver()
        for number in (1250, 2500):  # two checkpoints are kept, and `checkpoint` names the later
            saver.save(session, str(target / "model.ckpt"), global_step=number)


def variables(prefix: str, out: str) -> None:
    """Write every variable of a checkpoint as TensorFlow's own reader has it."""
    reader = tf.train.load_checkpoint(prefix)
    names = reader.get_variable_to_shape_map()
    np.savez(out, **{name.replace("/", "|"): reader.get_tensor(name) for name in names})


def embed(
    folder: str, sentences: list[list[str]], layers: str, warmup: bool, average: bool, out: str
) -> None:
    """Write what ElmoModel gives."""
    tf.compat.v1.reset_default_graph()
    model = ElmoModel()
    model.load(folder, max_batch_size=len(sentences))
    method = model.get_elmo_vector_average if average else model.get_elmo_vectors
    np.savez(out, method(sentences, warmup=warmup, layers=layers))


def substitutes(folder: str, sentences: list[str], topn: int) -> dict[str, Any]:
    """What ElmoModel predicts for each word of each sentence; larger batches lose the ends of the text."""
    tf.compat.v1.reset_default_graph()
    model = ElmoModel()
    model.load(folder, max_batch_size=1, full=True)
    return {"answer": model.get_elmo_substitutes(sentences, topn=topn)}


serve(write_checkpoint, variables, embed, substitutes)
