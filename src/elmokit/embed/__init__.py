"""The main job: text in, the vectors of its tokens out."""
