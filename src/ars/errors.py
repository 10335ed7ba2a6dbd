"""The one family of exceptions for what a user can mend: a sentence that names the value and what would do."""


class ArsError(Exception):
    """A mistake or a failure that its message explains; the command line prints it and exits with 2."""


class SettingError(ArsError):
    """A setting has a value that cannot work."""


class FileError(ArsError):
    """A file or folder is missing, damaged, of another kind, or not to be touched."""


class SearchError(ArsError):
    """The code of a search does not keep the contract of `ars.searches.Search`."""


class UnknownSearchError(FileError):
    """A file is of a search that this version does not have."""


class TaskError(ArsError):
    """A task cannot be made, or its environment failed."""


class DivergedError(ArsError):
    """Training cannot go on: no direction gave a finite reward, or the update is not finite."""


class WorkerError(ArsError):
    """Workers keep dying, or could not be started."""
