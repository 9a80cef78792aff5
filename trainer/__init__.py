"""Learn: batches, advantages, losses, weights, curriculum, warm start, evaluation, diagnostics."""
