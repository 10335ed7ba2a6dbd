"""The one family of exceptions for what a user can mend: a sentence that names the value and what would do."""


class ArsError(Exception):
    """A mistake or a failure that its message explains; the command line prints it and exits with 2."""


class SettingError(ArsError):
    """A setting has a value that cannot work."""


class FileError(ArsError):
    """A file or folder is missing, damaged, of another kind, or not to be touched."""


class TaskError(ArsError):
    """A task cannot be made, or its environment failed."""


class DivergedError(ArsError):
    """Training cannot go on: no direction gave a finite reward, or the update is not finite."""


class WorkerError(ArsError):
    """Workers keep dying, or could not be started."""
