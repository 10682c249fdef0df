"""Every exception this library raises by a name of its own. Each message is a sentence to show. The command line
ends with 2 for input that cannot be used, a ValueError, and with 1 for what went wrong on the way."""

import errno

from contrastive_core.base.messages import N_, message, sentence

FULL = (errno.ENOSPC, errno.EDQUOT)
DISK = {errno.ENOSPC: N_("the disk is full"), errno.EDQUOT: N_("the disk quota is used up")}
DISK |= {errno.EROFS: N_("the disk is read-only"), errno.EIO: N_("the disk does not answer")}
DISK |= {errno.EMFILE: N_("too many files are open")} | dict.fromkeys(
    (errno.EACCES, errno.EPERM), N_("permission denied")
)


class LabError(Exception):
    """An error of this library, raised with a sentence, or with a template and its values."""

    def __init__(self, template: str = "", /, **values: object) -> None:
        super().__init__(message(template, **values) if values else template)


class UnknownName(LabError, ValueError):
    """A name that no registry entry has; the message lists those that exist."""


class BadSetting(LabError, ValueError):
    """A setting that cannot be used."""


class BadName(LabError, ValueError):
    """A run name that is not one plain file name."""


class NoSuchRun(LabError, ValueError):
    """There is no run of that name; the message lists some that exist."""


class NoDevice(LabError, ValueError):
    """A device was asked for that this machine does not have."""


class NotDownloaded(LabError, ValueError):
    """The data set has to be fetched first; the message says how large it is and how."""


class UnusableEmbedding(LabError, ValueError):
    """Vectors that cannot be used; the message says which rows and what to do."""


class CannotScore(LabError, ValueError):
    """A metric has no value for this input."""


class CannotImport(LabError, ValueError):
    """A checkpoint that is refused."""


class NotRecognized(LabError, ValueError):
    """A checkpoint whose encoder cannot be told; the message says what is in it."""


class Refused(LabError, ValueError):
    """The sandbox refuses to open a checkpoint."""


class Damaged(LabError, ValueError):
    """A file that is not what was written; the message names it."""


class NotRegular(LabError, ValueError):
    """No ordinary file (a pipe, a device, a socket), or a larger one than is read."""


class Gone(LabError, ValueError):
    """The run was renamed, moved or deleted meanwhile."""


class Locked(LabError, RuntimeError):
    """Another living process holds the lock."""


class CannotGoOn(LabError, RuntimeError):
    """Training, or encoding, has to end here; the message says why and what to try."""


class Diverged(CannotGoOn):
    """A loss or a gradient of a training is not finite."""


class Elsewhere(LabError):
    """Another process of the group failed, and says why: this one ends without a word."""


def explained(error: BaseException) -> str:
    """Return the reason of an error in words for a person; the kind of error only where its message alone is not
    understood.
    """
    text = sentence(error)
    if isinstance(error, KeyError):
        return message("{text} is missing", text=text)
    if isinstance(error, (ValueError, OSError)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def sentence_of(error: BaseException) -> str:
    """Return the text of an error, in words if the system gives a number."""
    if isinstance(error, OSError) and error.errno in DISK:
        place = error.filename or N_("a file cannot be written")
        text = message("{problem}: {place}", problem=DISK[error.errno], place=place)
        return message("{text}; free some space and try again", text=text) if error.errno in FULL else text
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    return sentence(error) or type(error).__name__
