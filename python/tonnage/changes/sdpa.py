# SPDX-License-Identifier: Apache-2.0
"""Attention through torch's scaled_dot_product_attention, which does not keep the weights of all pairs.

In the text: attention that is written out by hand (attention.py). Models of transformers that were
told to use `attn_implementation="eager"` are told "sdpa". torch's MultiheadAttention takes it where nobody asks for the weights:
`y, _ = attention(q, k, v)` and `attention(q, k, v)[0]` throw them away.
"""

import ast

from . import arguments, attention, code, wrap

_FUNCTION = "torch.nn.functional.scaled_dot_product_attention"
_LONG = 100  # columns
_WEIGHTS = "need_weights"
_HOW_WEIGHTS = ("Call MultiheadAttention with need_weights=False: nobody reads its weights, and it takes scaled_dot_product_attention then, "
                "which does not keep them. Where it has dropout, other elements are dropped.")
_HOW = "Use torch.nn.functional.scaled_dot_product_attention: it does not keep the attention weights."
_HOW_DROPOUT = _HOW + " Its dropout drops other elements, as another seed does."


def edit(change, source):
    """Finds attention by the formula in one file."""
    for found in attention.find(source):
        _replace(change, source, found)
    for word in source.all(ast.keyword) if source.says("attn_implementation") else ():
        if word.arg in ("attn_implementation", "_attn_implementation"):
            if isinstance(word.value, ast.Constant) and word.value.value == "eager":
                change.edits(source).replace(word.value, '"sdpa"')
                _tell(change, source, word.value, '%s="sdpa"' % word.arg)
    for call in _weights_thrown_away(source):
        code.add_argument(change.edits(source), call, "%s=False" % _WEIGHTS)
        _tell(change, source, call, "MultiheadAttention without need_weights", _HOW_WEIGHTS)


def _weights_thrown_away(source):
    """Calls of a MultiheadAttention that the file makes, whose second result nobody reads."""
    if not source.says("MultiheadAttention"):
        return []
    own = {node.name for node in source.all(ast.ClassDef)}
    if "MultiheadAttention" in own or not code.calls(source, "MultiheadAttention"):
        return []
    found = []
    for node in source.all(ast.Assign, ast.Subscript):
        call = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Tuple):
            names = node.targets[0].elts
            call = node.value if len(names) == 2 and getattr(names[1], "id", None) == "_" else None
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 0:
            call = node.value
        if isinstance(call, ast.Call) and _is_attention(call):
            found.append(call)
    return found


def _is_attention(call):
    words = {word.arg for word in call.keywords}
    takes = len(call.args) == 3 or {"query", "key", "value"} <= words
    return takes and None not in words and not words & {_WEIGHTS, "average_attn_weights"} and code.last(call.func) != "MultiheadAttention"


def _replace(change, source, one):
    """An Attention becomes a call."""
    edits = change.edits(source)
    mask = _mask(edits, source, one)
    more = ".unsqueeze(1)" if one.rank == 3 else ""  # three dimensions have no kernel that keeps no scores
    words = [", ".join("%s%s" % (text, more) for text in (one.q, one.k, one.v))]
    if mask is not None:
        words.append("attn_mask=%s" % mask)
    if one.dropout is not None:
        words.append("dropout_p=%s" % one.dropout)
    words.append("scale=%s" % (" * ".join("(%s)" % text for text in one.scale) if len(one.scale) > 1 else (one.scale or ["1.0"])[0]))
    called = _FUNCTION + "(%s)" + (".squeeze(1)" if more else "")
    edits.replace(one.product, one.out % called % _lines(source, one, words))
    for statement in one.removed:
        edits.remove(statement)
    code.need_import(edits, "torch")
    _tell(change, source, source.statement(one.product), "scaled_dot_product_attention (keeps no scores)",
          _HOW if one.dropout is None else _HOW_DROPOUT)


def _lines(source, one, words):
    """Arguments, a line each where one line of them all would be a long one."""
    statement = source.statement(one.product)
    start = statement.col_offset
    around = len(source.of(statement)) - len(source.of(one.product))
    if start + around + len(_FUNCTION) + len(", ".join(words)) <= _LONG:
        return ", ".join(words)
    return ",".join("\n" + " " * (start + 4) + word for word in words)


def _mask(edits, source, one):
    """The text of attn_mask, or None. What is masked in a statement of its own is bound to a name there."""
    if not one.masks:
        return None
    statement, text = one.masks[0]
    text = text.replace("{q}", one.q)
    if one.rank == 3:
        text = "(%s).unsqueeze(-3)" % text
    if statement is None:
        return text
    name = next(name for name in ("score_mask", "mask_of_scores", "score_mask_") if name not in source.names())
    edits.insert_before(one.made, "%s = None" % name)
    edits.replace(statement, "%s = %s" % (name, text))
    return name


def _tell(change, source, node, what, how=_HOW):
    change.note(wrap.place_of(source, node), what)
    change.effect()
    arguments.say(change, how)
