"""The study: which runs and measurements the paper's tables and figures need, and a scheduler that
does each once."""
