"""The one training loop and what it needs: checkpoints, metrics, several processes."""
