"""The exceptions for errors that a user can fix; each message is one sentence that names the value and a remedy."""

LONGEST_SENTENCE = 1000  # letters


class ArsError(Exception):
    """An error that its message explains; the command line prints the message and exits with 2."""


class SettingError(ArsError):
    """A setting has an invalid value."""


class FileError(ArsError):
    """A file or folder is missing, damaged, of the wrong kind, or in use."""


class OutputError(ArsError):
    """Standard output cannot be written."""


class Interrupt(KeyboardInterrupt):
    """A signal, whose number is the argument, asks to end; a KeyboardInterrupt may also be an environment's own."""


class SearchError(ArsError):
    """The code of a search violates the contract of `ars.searches.Search`."""


class UnknownSearchError(FileError):
    """A file uses a search that this version does not have."""


class TaskError(ArsError):
    """A task cannot be made, or its environment failed."""


class DivergedError(ArsError):
    """Training cannot continue: no direction had finite rewards, or the update is not finite."""


class WorkerError(ArsError):
    """Workers keep dying, or could not be started."""


def sentence(error: BaseException) -> str:
    """A message of ours as one printable line. It repeats what the user gave, which may be long or contain control
    characters, and is cut in the middle, because the reason is at its end."""
    line = " ".join(str(error).split())
    if len(line) > LONGEST_SENTENCE:
        line = f"{line[: LONGEST_SENTENCE - 400]} [...] {line[-400:]}"
    return printable(line)


def printable(text: object) -> str:
    """Text whose control characters are shown instead of sent to the terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))
