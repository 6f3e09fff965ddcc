"""The one exception that means "your input", not "our bug": the command line prints its sentence and exits with 2."""


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence that names what and where."""
