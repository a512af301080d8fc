# SPDX-License-Identifier: Apache-2.0
"""Manual pages (mdoc, as doc/man has them) as Markdown. Knows the macros that those pages use, and refuses others: a page
that is shown half would be worse than a build that stops."""

import html
import re

SPECIAL = {r"\-": "-", r"\&": "", r"\(pc": "%", r"\(mu": "×", r"\(aq": "'", r"\(ga": "`", r"\ ": " ", r"\e": "\\"}
CLOSING = set(".,;:)]?!")
WRAPS = {"Op": "[]", "Pq": "()", "Dq": "“”", "Sq": "‘’", "Ql": None}
CODE = ("Cm", "Ic", "Li", "Ql", "Ev", "Pa", "Er", "Dv", "Va", "Fn", "Fl", "Nm")
TAGS = {**dict.fromkeys(CODE, "code"), "Ar": "var", "Sy": "strong", "Em": "em"}
ALL = set(TAGS) | set(WRAPS) | {"Xr", "Sx", "Ns", "Po", "Pc", "No"}
SILENT = {"Dd", "Dt", "Os"}


class UnknownMacro(Exception):
    pass


def plain(text):
    """Text of roff as characters."""
    for escape, character in SPECIAL.items():
        text = text.replace(escape, character)
    if "\\" in text.replace("\\\\", ""):
        raise UnknownMacro(f"an escape that mdoc.py does not know: {text}")
    return text


def quoted(text):
    """Text in which Markdown finds nothing of its own."""
    safe = html.escape(text, quote=False).replace("&amp;", "&#38;")
    return re.sub(r"[\\`*_{}\[\]<>#|~^=!$+-]", lambda found: f"&#{ord(found[0])};", safe)


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def words_of(line):
    """The words of a macro's line; "quoted words" are one."""
    return re.findall(r'"[^"]*"|\S+', line)


class Inline:
    """One line of macros. Closing punctuation stands without a blank before it."""

    def __init__(self, words, name, marked=True):
        self.words, self.name, self.marked = [word.strip('"') if word[0] == '"' else word for word in words], name, marked
        self.out, self.joined = "", False

    def add(self, text):
        if self.out and not self.joined and text not in CLOSING:
            self.out += " "
        self.out += text
        self.joined = False

    def word(self, tag, text):
        text = plain(text)
        if not self.marked:
            return text
        return f"<{tag}>{quoted(text)}</{tag}>" if tag else quoted(text)

    def render(self):
        while self.words:
            self.one()
        return self.out

    def one(self):
        word = self.words.pop(0)
        if word in CLOSING:
            self.add(word)
        elif word == "Ns":
            self.joined = True
        elif word in ("Po", "Pc"):
            self.parenthesis(word)
        elif word in ("Xr", "Sx"):
            self.link(word)
        elif word in WRAPS and WRAPS[word]:
            self.wrapped(*WRAPS[word])
        elif word in TAGS:
            self.tagged(word)
        else:
            self.add(self.word(None, word))

    def parenthesis(self, word):
        if word == "Po":
            self.add("(")
            self.joined = True
        else:
            self.out += ")"

    def wrapped(self, opening, closing):
        words, tail = self.words, []
        while words and words[-1] in CLOSING:
            tail.insert(0, words.pop())
        inner = Inline(words, self.name, self.marked)
        self.words = tail
        self.add(self.word(None, opening) + inner.render() + self.word(None, closing))

    def link(self, word):
        if word == "Xr":
            page, section = self.words.pop(0), self.words.pop(0)
            known = page == "tonnage" or page.startswith("tonnage-")
            self.add(f"[{quoted(page)}]({page}.md)" if known and self.marked else self.word("code", f"{page}({section})"))
        else:
            taken = []
            while self.words and self.words[0] not in CLOSING:
                taken.append(self.words.pop(0))
            title = " ".join(taken)
            self.add(f"[{quoted(title)}](#{slug(title)})")

    def tagged(self, macro):
        taken = []
        while self.words and self.words[0] not in ALL and self.words[0] not in CLOSING and self.words[0] != "|":
            taken.append(self.words.pop(0))
        if macro == "Fn" and taken:
            taken[-1] += "()"
        if macro == "Nm" and not taken:
            taken = [self.name]
        if macro == "Fl":
            self.add(self.flags(taken))
        elif macro in ("Sy", "Em", "Ql", "Li", "Nm", "Cm", "Pa"):
            self.add(self.word(TAGS[macro], " ".join(taken)))
        else:
            for word in taken:
                self.add(self.word(TAGS[macro], word))

    def flags(self, taken):
        return " ".join(self.word("code", "-" + word) for word in taken or [""])


class Page:
    """A manual page, line by line, as Markdown."""

    def __init__(self, text):
        self.lines = [line for line in text.splitlines() if not line.startswith('.\\"')]
        self.name, self.out, self.lists, self.section, self.paragraph, self.code = "", [], [], "", [], []

    @property
    def indent(self):
        return "    " * len(self.lists)

    def flush(self):
        if self.paragraph:
            self.emit(" ".join(self.paragraph))
            self.paragraph = []
        if self.code:
            code, self.code = self.code, []
            self.emit("\n".join(["```text", *code, "```"]))

    def emit(self, text):
        self.out += [self.indent + line if line else "" for line in text.split("\n")] + [""]

    def markdown(self):
        for line in self.lines:
            if line.startswith("."):
                self.macro(*(words_of(line[1:]) or [""]))
            else:
                self.text(quoted(plain(line)))
        self.flush()
        return "\n".join(self.out)

    def text(self, text):
        if self.code:
            self.flush()
        self.paragraph.append(text)

    def macro(self, macro, *words):
        handler = getattr(self, f"do_{macro}", None)
        if handler:
            handler(list(words))
        elif macro in ALL:
            self.inline([macro, *words])
        elif macro not in SILENT:
            raise UnknownMacro(f".{macro} is a macro that mdoc.py does not know")

    def inline(self, words):
        if self.section == "SYNOPSIS":
            self.synopsis(words)
            return
        if words == ["Pc"] and self.paragraph:
            self.paragraph[-1] += ")"
            return
        rendered = Inline(words, self.name).render()
        if self.paragraph and self.paragraph[-1].endswith("("):
            self.paragraph[-1] += rendered
        else:
            self.text(rendered)

    def synopsis(self, words):
        rendered = Inline(words, self.name, marked=False).render()
        if words[0] == "Nm":
            self.code.append(rendered)
        else:
            self.code[-1] += " " + rendered

    def do_Nm(self, words):
        if words and not self.name and self.section == "NAME":
            self.name = words[0].replace("tonnage-", "tonnage ")
        elif self.section != "NAME":
            self.inline(["Nm", *words])

    def do_Nd(self, words):
        self.emit(plain(" ".join(words))[:1].upper() + plain(" ".join(words))[1:] + ".")

    def do_Sh(self, words):
        self.flush()
        self.section = " ".join(words)
        title = self.section.capitalize()
        if self.section == "NAME":
            return
        self.emit(f"## {quoted(title)} {{ #{slug(self.section)} }}")

    def do_Ss(self, words):
        self.flush()
        title = " ".join(words)
        self.emit(f"### {quoted(title)} {{ #{slug(title)} }}")

    def do_Pp(self, words):
        self.flush()

    def do_Dl(self, words):
        if self.paragraph:
            self.flush()
        self.code.append(plain(" ".join(words)))

    def do_Bl(self, words):
        self.flush()
        self.lists.append([words[0], False])

    def do_El(self, words):
        self.flush()
        self.lists.pop()
        if not self.lists:
            self.emit("<!-- -->")  # what follows is no part of the list

    def do_It(self, words):
        self.flush()
        kind, depth = self.lists[-1][0], "    " * (len(self.lists) - 1)
        if kind == "-enum":
            self.out.append(f"{depth}1.")
            self.out[-1] += "  "
            self.lists[-1][1] = True
            return
        term = Inline(words, self.name).render()
        option = re.match(r"<code>(&#45;&#45;[a-z&#0-9;]+?)</code>", term)
        anchor = f'<span id="option-{html.unescape(option[1]).strip("-")}"></span>' if option and self.section == "DESCRIPTION" else ""
        self.out += [f"{depth}{anchor}{term}", "", f"{depth}:   "]


def tidy(text):
    """The first paragraph of an item stands on the item's own line."""
    text = re.sub(r"(?m)^(\s*):   \n\s*", r"\1:   ", text)
    text = re.sub(r"(?m)^(\s*1\.)  \n\s*", r"\1  ", text)
    return re.sub(r"(?m)^(\S[^\n]*)\n\n(:   )", r"\1\n\2", text)


def to_markdown(name, text):
    page = Page(text)
    body = tidy(page.markdown())
    return f"# {page.name or name}\n\n{body}\n"
