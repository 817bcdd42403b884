"""Pretraining of BERT: from raw text to a folder that transformers opens.

bert_recipe      what is trained and how
word_pieces      the WordPiece vocabulary of the corpus, and its text as pieces
packed_rows      rows full of sequences, with the pieces to predict
masked_network   one step: loss and gradients; transformers' model, the softmax at masked positions alone
bert_job         these as a job for the training loop
bert_card        what a run leaves for people to read
text_to_bert     from text to the model's folder
"""

from elmokit.pretraining.bert.bert_recipe import BertRecipe, BertShape, read_bert_recipe
from elmokit.pretraining.bert.masked_network import MaskedScores
from elmokit.pretraining.bert.text_to_bert import pretrain_bert

__all__ = ["BertRecipe", "BertShape", "MaskedScores", "pretrain_bert", "read_bert_recipe"]
