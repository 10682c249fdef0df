"""The exceptions that this library raises. Each message is a sentence for the user. The command line exits with 2 for
unusable input (a ValueError) and with 1 for other errors."""

import errno

from contrastive_core.base.messages import N_, message, sentence

FULL = (errno.ENOSPC, errno.EDQUOT)
DISK = {errno.ENOSPC: N_("the disk is full"), errno.EDQUOT: N_("the disk quota is used up")}
DISK |= {errno.EROFS: N_("the disk is read-only"), errno.EIO: N_("the disk does not respond")}
DISK |= {errno.EMFILE: N_("too many files are open")} | dict.fromkeys(
    (errno.EACCES, errno.EPERM), N_("permission denied")
)


class LabError(Exception):
    """Base class of this library's errors, raised with a sentence, or with a template and its values."""

    def __init__(self, template: str = "", /, **values: object) -> None:
        super().__init__(message(template, **values) if values else template)


class UnknownName(LabError, ValueError):
    """A name is not in the registry; the message lists the known names."""


class BadSetting(LabError, ValueError):
    """A setting has an unusable value."""


class BadName(LabError, ValueError):
    """A run's name is not a plain file name."""


class NoSuchRun(LabError, ValueError):
    """No run has this name; the message lists some that exist."""


class NoDevice(LabError, ValueError):
    """The requested device does not exist on this machine."""


class NotDownloaded(LabError, ValueError):
    """The data set has not been downloaded; the message says how large it is and how to download it."""


class UnusableEmbedding(LabError, ValueError):
    """The vectors cannot be used; the message says which rows are wrong and what to do."""


class CannotScore(LabError, ValueError):
    """A metric has no value for this input."""


class CannotImport(LabError, ValueError):
    """A checkpoint cannot be imported."""


class NotRecognized(LabError, ValueError):
    """The encoder of a checkpoint cannot be detected; the message describes the content of the file."""


class Refused(LabError, ValueError):
    """The sandbox refuses to open a file, for example because it is damaged or too large."""


class Damaged(LabError, ValueError):
    """A file is damaged; the message names it."""


class NotRegular(LabError, ValueError):
    """A file is too large or not a regular file (a pipe, a device, a socket)."""


class Gone(LabError, ValueError):
    """The run was renamed, moved or deleted in the meantime."""


class Locked(LabError, RuntimeError):
    """Another running process holds the lock."""


class CannotGoOn(LabError, RuntimeError):
    """Training or encoding cannot continue; the message says why and what to try."""


class Diverged(CannotGoOn):
    """The loss or a gradient of a training is not finite."""


class Elsewhere(LabError):
    """Another process of the group failed and reports the error: this process exits without a message."""


def explained(error: BaseException) -> str:
    """Return an error as text for the user, with the class of the error if the message alone is unclear."""
    text = sentence(error)
    if isinstance(error, KeyError):
        return message("{text} is missing", text=text)
    if isinstance(error, (ValueError, OSError)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def sentence_of(error: BaseException) -> str:
    """Return the text of an error. System errors about storage and files are explained in words."""
    if isinstance(error, OSError) and error.errno in DISK:
        place = error.filename or N_("a file cannot be written")
        text = message("{problem}: {place}", problem=DISK[error.errno], place=place)
        return message("{text}; free some space and try again", text=text) if error.errno in FULL else text
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    return sentence(error) or type(error).__name__
