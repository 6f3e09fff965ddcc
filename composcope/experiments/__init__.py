"""One file for each claim or question: it trains, measures and returns rows. Here rooms meet."""
