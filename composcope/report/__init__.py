"""How it is shown: figures, tables and pages are functions of rows and kept arrays."""
