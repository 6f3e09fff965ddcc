"""`python -m composcope COMMAND ...`"""

from composcope.cli import main

main()
