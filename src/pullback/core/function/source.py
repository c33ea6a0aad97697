"""Functions whose source is written by the library: compiled at their first call, and shown.

Owns the compiling, the global names that a written function sees, the place in `linecache` by which
tracebacks show the source, and the exchange of a function's code: a function has its name,
signature, module and identity from the start, and gets the code that was written for it when it is
first called.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import linecache
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

# What generated functions call themselves a part of; their frames count as the library's.
_MODULE = "pullback.generated"


def _not_compiled() -> Any:
    return first_call(locals())  # type: ignore[name-defined]  # noqa: F821  (a global by then)


def lazy_function(
    name: str,
    arrays: Sequence[str],
    settings: dict[str, Any],
    write: Callable[[], tuple[str, dict[str, Any]]],
    *,
    variadic: bool = False,
    refuses: Sequence[str] = (),
) -> FunctionType:
    """Return a function ``name(arrays, /, *, settings)`` that is compiled at its first call.

    Parameters
    ----------
    name : str
    arrays : sequence of str
        The positional-only parameters; of a `variadic` function the one name of all of them.
    settings : dict
        The keyword-only parameters with their defaults, `inspect.Parameter.empty` for none.
    refuses : sequence of str
        What its source calls other positional arguments, and the keywords, for which it has errors
        of its own.
    write : callable
        Called once: returns the source of a function of that signature, and the global names
        that it uses.
    """
    positional = () if variadic else tuple(arrays)
    rest = arrays[0] if variadic else next(iter(refuses), "")
    keywords = (*settings, *refuses[1:])
    names = (*positional, *keywords, *([rest] if rest else ()))

    def compile_now() -> None:
        source, needed = write()
        uses.update(needed)
        function.__code__ = compiled(name, source)

    def first_call(variables: dict[str, Any]) -> Any:
        compile_now()
        given = [*[variables[n] for n in positional], *variables.get(rest, ())]
        return function(*given, **{n: variables[n] for n in keywords})

    uses = _globals({"first_call": first_call, "compile_now": compile_now})
    function = FunctionType(_stub(name, positional, names, len(keywords), bool(rest)), uses, name)
    required = inspect.Parameter.empty
    defaults = {**settings, **dict.fromkeys(refuses[1:])}
    function.__kwdefaults__ = {n: v for n, v in defaults.items() if v is not required} or None
    if refuses:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY)
        parameters = [inspect.Parameter(n, kinds[0]) for n in positional]
        parameters += [inspect.Parameter(n, kinds[1], default=v) for n, v in settings.items()]
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def _stub(
    name: str, positional: Sequence[str], names: tuple[str, ...], keywords: int, has_rest: bool
) -> CodeType:
    """Return code of the right signature that makes the first call."""
    code = _not_compiled.__code__
    return code.replace(
        co_name=name,
        co_qualname=name,
        co_argcount=len(positional),
        co_posonlyargcount=len(positional),
        co_kwonlyargcount=keywords,
        co_varnames=names,
        co_nlocals=len(names),
        co_flags=code.co_flags | (inspect.CO_VARARGS if has_rest else 0),
    )


def written_function(name: str, source: str, uses: Mapping[str, Any]) -> FunctionType:
    """Return the one function that `source` defines, which uses these global names."""
    return FunctionType(compiled(name, source), _globals(uses), name)


def _globals(uses: Mapping[str, Any]) -> dict[str, Any]:
    # Python's own code reads __builtins__ of the running frame: `warnings` does, to show a line.
    return {"__name__": _MODULE, "__builtins__": builtins, **uses}


@functools.cache  # an operation may be defined in a function that is called often
def compiled(name: str, source: str) -> CodeType:
    """Return the code of the one function that `source` defines, its lines shown by tracebacks."""
    lines = source.splitlines(keepends=True)
    for number in itertools.count():  # two operations may have one name
        filename = f"<pullback generated {name}{f' {number}' if number else ''}>"
        entry = (len(source), None, lines, filename)
        if linecache.cache.setdefault(filename, entry) == entry:
            break
    module = compile(source, filename, "exec")
    return next(c for c in module.co_consts if isinstance(c, CodeType))


def source_of(function: Callable[..., Any]) -> str:
    """Return the source that is written for a generated function; empty for any other."""
    uses = getattr(function, "__globals__", {})
    if "compile_now" not in uses:
        return ""
    if function.__code__.co_filename == __file__:
        uses["compile_now"]()
    return "".join(linecache.getlines(function.__code__.co_filename))
