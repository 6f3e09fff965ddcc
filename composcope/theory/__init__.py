"""What must be true: the paper's claims on distributions small enough to compute, and SIM."""
