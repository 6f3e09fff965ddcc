"""Noise, and taking it away: the denoiser contract, loss, EMA, sampling and the training loop."""
