"""Small examples of what elmokit writes, for the tests of faults."""

import pyarrow as pa

from elmokit.graph import Evidence, GraphEdge, GraphNode, KnowledgeGraph, NodeMention
from elmokit.integrations.embed_batches import EmbedBatches
from elmokit.vectors import ShardFolder, write_shard


def small_graph():
    ada = GraphNode("n1", "PER", [NodeMention("a", 0, 3, "Ada"), NodeMention("b", 0, 3, "Ada")])
    rome = GraphNode("n2", "LOC", [NodeMention("a", 9, 13, "Rome")])
    said = [Evidence("a", 0, 14, "Ada left Rome.", 0.9)]
    return KnowledgeGraph([ada, rome], [GraphEdge("n1", "n2", "left", said)])


def write_shards(folder, model):
    """Two shards of vectors, as several processes write them."""
    shards = ShardFolder(folder, {"dtype": "float32"}, resume=(folder / "job.json").exists())
    embed = EmbedBatches(str(model), layers="mix", on_error="null")
    for number, texts in enumerate((["the cat", "sat"], [None, "né"])):
        table = embed({"text": texts}).add_column(0, "line", pa.array(range(2), pa.int64()))
        write_shard(shards.path(number), table, {"model": "tiny"})
    shards.finish([2, 2])
