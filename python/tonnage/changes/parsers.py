# SPDX-License-Identifier: Apache-2.0
"""The options of programs whose command line is read by fire, absl, tyro, jsonargparse (Lightning's CLI), hydra, OmegaConf or
yacs, read when the library has read them.

Of a configuration that is put together from files and from `key=value` words each number that is written there by itself is an
option, whether the command line names it or not: the word goes before the file. Interpolations are left out.
"""

import functools
import sys

from _tonnage_guest import imports

from . import results
from .option import LAUNCHERS, flat, is_given, kind_of, make


def watch(use):
    """use(library, [Option, ...]) each time that one of the libraries has read the program's command line."""
    for name, patch in (("fire.core", _fire), ("absl.flags._flagvalues", _absl), ("tyro._calling", _tyro),
                        ("jsonargparse._core", _jsonargparse), ("jsonargparse.core", _jsonargparse),
                        ("hydra.core.utils", _hydra), ("omegaconf.omegaconf", _omegaconf), ("yacs.config", _yacs)):  # fmt: skip
        guard = results.Change(name, None, None)
        imports.watch(name, guard.guarded(functools.partial(patch, guard, functools.partial(use, name))))


def _after(owner, name, look):
    """look(result, *args, **kwargs) after each call of a function of a module or class."""
    plain = owner.__dict__[name]
    original = plain.__func__ if isinstance(plain, staticmethod) else plain

    @functools.wraps(original)
    def call(*args, **kwargs):
        result = original(*args, **kwargs)
        look(result, *args, **kwargs)
        return result

    setattr(owner, name, staticmethod(call) if isinstance(plain, staticmethod) else call)


def _dashed(name, value, equals=False):
    """--name and, as libraries take both, --na-me; of a name that stands there alone a word follows."""
    spellings = ("--" + name, "--" + name.replace("_", "-"))
    kind = kind_of(value)
    option = make(name, spellings, kind, None, value, equals)
    return option._replace(equals=equals and option.typed not in sys.argv) if kind else None


def _known(options):
    return [option for option in options if option is not None]


# ---- fire ----


def _fire(change, use, module):
    def look(function, values, words):
        names = module.inspectutils.GetFullArgSpec(function).args
        if (getattr(function, "__module__", None) or "").startswith(LAUNCHERS) or not is_given(words):
            return
        use(_known(_dashed(name, value) for name, value in zip(names, values) if name != "self"))

    def made(parse, function, *rest):
        @functools.wraps(parse)
        def read(args):
            result = parse(args)
            change.guarded(look)(function, result[0][0], [word for word in args if word.startswith("--")])
            return result

        return read

    original = module._MakeParseFn
    module._MakeParseFn = functools.wraps(original)(lambda *args: made(original(*args), *args))


# ---- absl ----


def _absl(change, use, module):
    def look(result, flags, argv, *rest, **more):
        if not is_given(argv[1:]):
            return
        found = []
        for owner, declared in flags.flags_by_module_dict().items():
            if not owner.startswith("absl."):
                found += [_of_flag(flag) for flag in declared]
        use(_known(found))

    _after(module.FlagValues, "__call__", change.guarded(look))


def _of_flag(flag):
    if "deprecated" in (flag.help or "").lower() or flag.allow_override_cpp or flag.flag_type().startswith("multi"):
        return None
    option = _dashed(flag.name, flag.value, equals=True)
    if option is None:
        return None
    if option.kind == "bool":  # --name, --noname
        return option._replace(kind="flag", spellings=option.spellings[:1], equals=False)
    return option._replace(spellings=option.spellings[:1], choices=getattr(flag.parser, "enum_values", None))


# ---- tyro ----


def _tyro(change, use, module):
    collected = []
    depth = [0]
    original = module.callable_with_args

    @functools.wraps(original)
    def callable_with_args(f, parser_definition, *rest, **more):
        depth[0] += 1
        try:
            collected.extend(_known(_of_tyro(argument) for argument in parser_definition.args))
            return original(f, parser_definition, *rest, **more)
        finally:
            depth[0] -= 1
            if not depth[0]:
                change.guarded(use)(collected[:])
                del collected[:]

    module.callable_with_args = callable_with_args


def _of_tyro(argument):
    spellings = [word for word in argument.lowered.name_or_flags if word.startswith("--")]
    if not spellings:
        return None
    spellings += [word.replace("-", "_").replace("__", "--", 1) for word in spellings if "-" in word[2:]]
    value = argument.field.default
    for word, following in zip(sys.argv[1:], sys.argv[2:] + [""]):
        name, equals, given = word.partition("=")
        if name in spellings and isinstance(value, int) and not isinstance(value, bool):
            value = int(given if equals else following)
    kind = kind_of(value)
    return make(spellings[0].lstrip("-").replace("-", "_"), spellings[:1] if kind == "bool" else spellings,
                "flag" if kind == "bool" else kind, None, value) if kind else None  # fmt: skip


# ---- jsonargparse ----


def _jsonargparse(change, use, module):
    def look(values, parser, args=None, *rest, **more):
        if args is None or is_given(args):
            found = values.as_dict()
            while isinstance(found.get(found.get("subcommand")), dict):
                found = found[found["subcommand"]]
            use(_known(_of_json(name, value) for name, value in flat(found)))

    _after(module.ArgumentParser, "parse_args", change.guarded(look))


def _of_json(name, value):
    kind = kind_of(value)
    return make(name, ("--" + name,), kind, None, value) if kind else None


# ---- key=value over a configuration ----


def _keys(name, value, prefixes=("", "+", "++")):
    """The option key=value; as it stands on the command line where it does."""
    kind = kind_of(value)
    option = make(name, tuple(prefix + name for prefix in prefixes), kind, None, value, equals=True)
    return option._replace(spellings=(option.typed or name,)) if kind else None


def _flat_config(config):
    """[(key, value)] of an OmegaConf configuration, without interpolations."""
    from omegaconf import DictConfig, OmegaConf

    found = []
    for key in config:
        if OmegaConf.is_missing(config, key) or OmegaConf.is_interpolation(config, key):
            continue
        value = config[key]
        if isinstance(value, DictConfig):
            found += [("%s.%s" % (key, name), inner) for name, inner in _flat_config(value)]
        else:
            found.append((str(key), value))
    return found


def _hydra(change, use, module):
    def look(function, config, *rest, **more):
        use(_known(_keys(name, value) for name, value in _flat_config(config) if not name.startswith("hydra.")))

    original = module.run_job

    @functools.wraps(original)
    def run_job(task_function, config, *rest, **more):
        change.guarded(look)(task_function, config)
        return original(task_function, config, *rest, **more)

    module.run_job = run_job


def _omegaconf(change, use, module):
    typed = []  # what was made of words of the command line

    def read(result, words=None, *rest, **more):
        words = list(words) if isinstance(words, (list, tuple)) else None
        if words is None or is_given(words):
            typed.append(result)

    def merged(result, *configs, **more):
        if any(config is one for config in configs for one in typed):
            typed.append(result)
            use(_known(_keys(name, value, ("",)) for name, value in _flat_config(result)))

    _after(module.OmegaConf, "from_dotlist", change.guarded(read))
    _after(module.OmegaConf, "from_cli", change.guarded(read))
    _after(module.OmegaConf, "merge", change.guarded(merged))


# ---- yacs ----


def _yacs(change, use, module):
    lists = []  # words that a configuration took from the command line

    def look(result, config, *rest, **more):
        found = []
        for name, value in flat(config):
            kind = kind_of(value)
            spellings = (name,) if lists and (name in sys.argv or lists[-1] == sys.argv[-len(lists[-1]):]) else ()
            found.append(make(name, spellings, kind, None, value) if kind else None)
        use(_known(found))

    def read(result, config, words, *rest, **more):
        if words and is_given(map(str, words)):
            lists.append(list(map(str, words)))

    _after(module.CfgNode, "merge_from_list", change.guarded(read))
    _after(module.CfgNode, "freeze", change.guarded(look))
