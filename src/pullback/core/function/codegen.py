r"""Python source that the library writes: templates, the names in them, late compiling.

Owns how the call and the backward of an operation become functions: the notation of templates, the
names that written source uses, compiling at the first call, and the place in `linecache` by which
tracebacks and `pullback.source` show it. A function has its name, signature, module and identity
from the start, and gets the code that was written for it when it is first called. Must not know
what is written.

A template is Python with two kinds of holes. ``{part}`` is filled in: a text, or lines, which
stand alone and get the indentation of the hole. ``$name`` is a name of the library's own: a
local one, or what core or Python has by that name (`register`). It is printed as it is, or with
underscores where a parameter has that name:

>>> lines = expand("if {x}._base is not None:\n    {then}", x="weight", then=["$sync(weight)"])
>>> Written("scaled", ["def scaled(weight, sync):", *lines], ["weight", "sync"]).source
'def scaled(weight, sync):\nif weight._base is not None:\n    _sync(weight)\n'
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pullback.core.graph import modes, node
from pullback.core.tensor import ownership, tensor, versions, views

# What generated functions call themselves a part of; their frames count as the library's.
_MODULE = "pullback.generated"
_OWN = re.compile(r"\$(\w+)")

# The global names of written source.
NAMES: dict[str, Any] = {**vars(builtins)}


def register(*modules: ModuleType, **names: Any) -> None:
    """Let written source use what modules define, and names beside; each stands for one thing."""
    for module in modules:
        for name, value in vars(module).items():
            if name[0] != "_" and getattr(value, "__module__", module.__name__) == module.__name__:
                names[name] = value
    for name, value in names.items():
        assert NAMES.setdefault(name, value) is value, name


register(modes, node, ownership, tensor, versions, views)


def expand(template: str, **parts: str | Sequence[str]) -> list[str]:
    """Return the lines of a template with its parts filled in."""
    result = []
    for line in template.strip("\n").split("\n"):
        body = line.lstrip()
        part = parts.get(body[1:-1]) if body[:1] == "{" else None
        if part is None or isinstance(part, str):
            result.append(line.format(**parts))
        else:
            indent = line.removesuffix(body)
            result += [indent + each for each in part]
    return result


class Written:
    """The source of one function, and the global names that it uses.

    Tracebacks call it `name`. In its `lines` names of the library's own begin with ``$``, and give
    way to those that users chose, `parameters`; it `uses` global names beside those of `NAMES`.
    """

    def __init__(
        self, name: str, lines: Sequence[str], parameters: Iterable[str] = (), **uses: Any
    ) -> None:
        text = "\n".join(lines) + "\n"
        own, reserved, prefix = set(_OWN.findall(text)), set(parameters), ""
        while any(prefix + each in reserved for each in own):
            prefix += "_"
        self.name, self.prefix, self.source = name, prefix, text.replace("$", prefix)
        known = {**NAMES, **uses}
        self.names = {prefix + each: known[each] for each in own if each in known}

    def function(self) -> FunctionType:
        """Return the function."""
        return FunctionType(compiled(self.name, self.source), _globals(self.names), self.name)


def define(head: str, body: Sequence[str], **uses: Any) -> FunctionType:
    """Return a function with a head such as ``"release(node)"`` and the lines of its body."""
    name, *parameters = re.findall(r"\w+", head)
    return Written(name, [f"def {head}:", *indented(body)], parameters, **uses).function()


def define_as(
    signature: inspect.Signature, body: Sequence[str], name: str, label: str, **uses: Any
) -> FunctionType:
    """Return a function of a signature, with its defaults, whose file is called `label`."""
    lines = [f"def {name}{written_parameters(signature)}:", *indented(body)]
    function = Written(label, lines, signature.parameters, **uses).function()
    function.__name__ = function.__qualname__ = name
    give_defaults(function, signature)
    annotations = {n: p.annotation for n, p in signature.parameters.items()}
    function.__annotations__ = {n: a for n, a in annotations.items() if a is not _NONE}
    return function


def give_defaults(function: FunctionType, signature: inspect.Signature) -> None:
    """Give a written function the defaults of a signature, which are any objects."""
    optional = [p for p in signature.parameters.values() if p.default is not _NONE]
    by_keyword = {p.name: p.default for p in optional if p.kind is p.KEYWORD_ONLY}
    function.__defaults__ = tuple(p.default for p in optional if p.name not in by_keyword)
    function.__kwdefaults__ = by_keyword


def written_parameters(signature: inspect.Signature) -> str:
    """Return the parameters of a signature as source shows them, defaults that are plain."""
    shown = []
    for p in signature.parameters.values():
        is_plain = p.default is _NONE or isinstance(p.default, (bool, int, float, str, tuple))
        shown.append(p.replace(annotation=_NONE, default=p.default if is_plain else None))
    return str(signature.replace(parameters=shown, return_annotation=_NONE))


_NONE = inspect.Parameter.empty


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines as a block within others."""
    return [f"    {line}" for line in lines]


def tupled(items: Sequence[str]) -> str:
    """Return the source of a tuple."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _not_compiled() -> Any:
    return first_call(locals())  # type: ignore[name-defined]  # noqa: F821  (a global by then)


def lazy_function(
    name: str,
    arrays: Sequence[str],
    settings: dict[str, Any],
    write: Callable[[], Written],
    *,
    variadic: bool = False,
    refuses: Sequence[str] = (),
) -> FunctionType:
    """Return a function ``name(arrays, /, *, settings)`` that `write` writes at its first call.

    `arrays` has one name if the function is `variadic`, and `settings` the defaults, those required
    with `inspect.Parameter.empty`. `refuses`: what its source calls other positional arguments, and
    the keywords, for which it has errors of its own.
    """
    positional = () if variadic else tuple(arrays)
    rest = arrays[0] if variadic else next(iter(refuses), "")
    keywords = (*settings, *refuses[1:])
    names = (*positional, *keywords, *([rest] if rest else ()))

    def compile_now() -> None:
        written = write()
        uses.update(written.names)
        function.__code__ = compiled(name, written.source)

    def first_call(variables: dict[str, Any]) -> Any:
        compile_now()
        args = [*[variables[n] for n in positional], *variables.get(rest, ())]
        return function(*args, **{n: variables[n] for n in keywords})

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
    if uses.get("__name__") != _MODULE:
        return ""
    if function.__code__.co_filename == __file__:
        uses["compile_now"]()
    return "".join(linecache.getlines(function.__code__.co_filename))
