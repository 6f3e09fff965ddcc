"""The pages of docs/ that are made of what ships: results and cards. `make pages` writes them."""
