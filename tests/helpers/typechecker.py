"""How annotations are held at run time: an int is welcome where a float is asked for.

jaxtyping binds a call's arguments and compares the sizes of axes, which takes longer than many a function itself. Where
no annotation has axes, beartype alone checks the same. Where one has, arguments of the same types, dtypes and shapes as
in an earlier call are not checked again.
"""

import builtins
import dataclasses
import functools
import inspect
import itertools
import re
from collections.abc import Callable
from types import CodeType
from typing import Any, get_args

import jaxtyping
import numpy as np
import torch
from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
_of_axes = jaxtyping.jaxtyped
_UNKNOWN = object()
_defined: set[CodeType] = set()


def has_axes(hint: object, names: dict[str, Any]) -> bool:
    """Whether an annotation, or an alias that it names, is an array of jaxtyping or not yet defined."""
    if isinstance(hint, str):
        return any(has_axes(_value(dotted, names), names) for dotted in re.findall(r"[^\W\d][\w.]*", hint))
    if hint is _UNKNOWN or (isinstance(hint, type) and (hint.__module__ or "").startswith("jaxtyping")):
        return True
    return any(has_axes(part, names) for part in get_args(hint) if not isinstance(part, str))


def _value(dotted: str, names: dict[str, Any]) -> object:
    first, *rest = dotted.split(".")
    known = names.get(first, getattr(builtins, first, _UNKNOWN))
    return functools.reduce(lambda value, name: getattr(value, name, None), rest, known)


def _form(value: object) -> object:
    """All of a value that a check looks at, hashable. Raises TypeError for a container whose parts vary."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return type(value), value.dtype, tuple(value.shape)
    if isinstance(value, (tuple, list)) and len(value) < 10:
        return type(value), *map(_form, value)
    if isinstance(value, dict) and len(value) < 10:
        return type(value), *map(_form, itertools.chain(*value.items()))
    if isinstance(value, (list, dict, set, frozenset, tuple)):
        raise TypeError
    return (type(value), value) if isinstance(value, (int, str)) else type(value)


def _known_form(*values: object) -> object:
    try:
        return tuple(map(_form, values))
    except TypeError:
        return None


def _once(plain: Callable[..., Any], checked: Callable[..., Any]) -> Callable[..., Any]:
    """Call `checked`, or `plain` where arguments of this form gave a result of a form that was checked. Where it gives
    another one, the next call is checked."""
    seen: dict[object, object] = {}

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        form = _known_form(*args, *itertools.chain(*kwargs.items()))
        before = seen.get(form)
        result = (checked if before is None else plain)(*args, **kwargs)
        after = _known_form(result)
        if form is None or after is None or before not in (None, after):
            seen.pop(form, None)
        else:
            seen[form] = after
        return result

    return call


def _jaxtyped(fn: Any = None, *, typechecker: Callable[[Any], Any]) -> Any:
    if fn is None:
        return functools.partial(_jaxtyped, typechecker=typechecker)
    made = vars(fn).get("__init__") if dataclasses.is_dataclass(fn) else fn
    if not inspect.isfunction(made) or inspect.isgeneratorfunction(made):
        return _of_axes(fn, typechecker=typechecker)
    if "<locals>" in made.__qualname__:  # defined at each call of another; checked as it is first defined
        if made.__code__ in _defined:
            return fn
        _defined.add(made.__code__)
    if any(has_axes(hint, made.__globals__) for hint in made.__annotations__.values()):
        checked = _once(made, _of_axes(made, typechecker=typechecker))
    else:
        checked = check(made)
    if made is fn:
        return checked
    fn.__init__ = checked
    return fn


jaxtyping.jaxtyped = _jaxtyped  # what jaxtyping's import hook decorates with
