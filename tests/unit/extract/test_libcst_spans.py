"""Spans of LibCST's nodes: against its own provider, and against the text where LibCST loses some of it."""

from __future__ import annotations

import inspect
import io
import tokenize

import libcst as cst
import pytest
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from codeanatomy.extract.libcst import spans as libcst_walk
from codeanatomy.extract.libcst.light_tree import LIGHT
from codeanatomy.extract.libcst.node_layout import EXPRESSIONS, OTHERS, STATEMENTS
from codeanatomy.extract.libcst.spans import Misplaced, NodeSpans

# Nearly every form of the grammar, with white space wherever it may stand.
FORMS = [
    "",
    "\n",
    "# c",
    "  ",
    "x = 1",
    "x=1\n  ",
    "x = 1 ; y = 2 ;\n",
    "if a:\n  pass\n  # c",
    "if 1:\n\tif 2:\n\t        x\n\t# c\n # d\n\n\ty\n",
    "if a : pass\n# c\nelif b : pass\nelif c : pass\nelse : pass\n",
    "def f ( a , / , b , * , c : int = 1 , ** k ) -> int : return 1 ;\n",
    "def f(* a : int, b): pass\ndef g(*a: *Ts): pass\n",
    "def f(\n  a, # c\n  *args, b # d\n): pass\n",
    "@ a . b ( c )\n# c\n@d\n\n# e\nasync  def f(): await  x\n",
    "@a\nclass A [T] ( b , * c , d = 1 , ** e , ) : x=1\nclass B: pass\nclass C(): pass\n",
    "class A:\n    # c\n    @a\n    def f(self): pass\n",
    "def f [ T : int = str , * Ts , ** P ] ( ) : pass\n",
    "type X [ T ] = int\ntype Y=int\n",
    "lambda : 0\nlambda a , * b , c = 1 , ** d : 0\nlambda *,a:0\nlambda a,/:0\n",
    "f ( a , * b , ** c , d = e , )\nf(x for x in y)\nf((x for x in y))\n",
    "( )\n(( ))\n( a , )\n((a,b))\n[ a , ]\n{ a , }\n{ a : b , ** c }\n{*a}\n[]\n{}\n",
    "[ x async for x in y if z if w for v in x ]\n{ a : b for a in c }\n",
    "{ a for a in b }\n{ ** a for a in b }\n",
    "a [ b ] [ c : d , : : e , * f , ... ] [ : ]\n",
    "a if  b  else c\n( yield )\n( yield  a )\n( a := 1 )\n( await  b )\n",
    "a = yield from  b\na , * b = c = d\n[ a , b ] = c\na . b . c = d\na += 1; a **= 2; a //= 3\n",
    "a >>= 4; a <<= 5; a -= 1; a *= 2; a @= 3; a /= 4; a %= 5; a &= 6; a |= 7; a ^= 8\n",
    "x : (int) = 3\na.b : int = 1\n",
    "not  a\na not  in b is  not c\na < b <= c > d >= e == f != g in h is i\n~ a ; - b ; + c\n",
    "a and b or c\na | b ^ c & d << e >> f + g - h * i @ j / k // l % m ** n\n",
    "1 + 1.5 + 2j + 0x1 + 1_000 + 1if a else b\n",
    "'a' \"b\" '''c\nd''' f'z{1}'\nrb'e'\n",
    "f'{a!r:>{w}} {b = } {{}} {c:{d}{e}} { f !s} {(lambda: 1)}'\nrf'''\n{\na\n}'''\nt'{a}b'\n",
    "f'{f'{1}'}'\n",
    "import a . b as c , d\nfrom .. a . b import c\nfrom ... import ( a as b , )\n",
    "from . import*\nfrom a import b , c\n",
    "lazy import a\nlazy from a import b\n",
    "raise\nraise a from b\nassert a , b\nglobal c , d\ndel ( a ) , b [ 0 ]\nreturn\nreturn(a)\nnonlocal e\n",
    "for  x , y  in z : break\nelse : continue\nwhile  a : pass\nelse : pass\n",
    "async def f():\n  async  for a in b: pass\n  async  with c as d: pass\n",
    "with a as b , c : pass\nwith ( a as b , c , ) : pass\nwith (a): pass\nwith (a, b) as c: pass\n",
    "try : a\nexcept A as e : b\nexcept ( B ): c\nexcept : d\nelse : e\nfinally : f\n",
    "try:\n a\nexcept  *  A  as  e  :\n b\nexcept*B:\n c\n",
    "try: a\nexcept A, B: b\n",
    "match a , b :\n # c\n case { 'k' : v , ** r , } : pass\n case A ( 1 , b = 2 , ) if x : pass\n # d\n",
    "match (a):\n  case [ * _ , a ] | ( b as c ) : pass\n  case - 1 + 2j | None | _ : pass\n",
    "match a:\n case (a,): pass\n case (): pass\n case a.b.c(): pass\n case A(x=1): pass\n",
    "match a:\n case a , * b : pass\n case 'a' 'b': pass\n",
    "x = (  # c\n\n  1  # d\n  # e\n)\nf(\n    a, # g\n  # h\n    b)\n",
    "x = '😀' ; é = 'é' # é\nﬁ = é\n",
    "x = 1 \\\n  + 2\n",
    "x\r\nif a:\r\n    y\r\n",
    "x\r\ny\nz\r\n",
]
# What LibCST's tree does not give back; its own provider is wrong from there on.
LOSSY = [
    "x\ry\r",
    "x\r\ny\nz\r",
    "\fx = 1\n",
    "if a:\n  x\n  \fy\n",
    "if a:\n  x\n\felse:\n  y\n",
    "@a\n\fdef f(): pass\n",
    "\\\nx = 1\n",
    "if a:\n    x\n\\\n    y\n",
    "try:\n  a\nexcept A :\n  b\n",
    "try:\n  a\nexcept* (A, B)\\\n :\n  b\n",
]


def places_of(code: str) -> NodeSpans:
    return NodeSpans(cst.parse_module(code), code.encode())


def test_every_node_has_a_recipe() -> None:
    known = EXPRESSIONS.keys() | STATEMENTS.keys() | OTHERS.keys()
    made = {
        kind
        for kind in vars(cst).values()
        if inspect.isclass(kind) and issubclass(kind, cst.CSTNode) and not inspect.isabstract(kind)
    }
    # The first three are the loop's own, the last is taken apart by what has it.
    assert made - known == {cst.SimpleWhitespace, cst.Newline, cst.Comment, cst.Annotation}


def own_parentheses(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Tuple | cst.GeneratorExp) and bool(node.lpar)


def decorated(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.IndentedBlock) and bool(getattr(node.body[0], "decorators", ()))


# Their spans are ours: a parameter is its name, the others are not used.
OURS = (cst.Param, cst.CompFor, cst.AsName, cst.TypeParameters, cst.MatchStar)


@pytest.mark.parametrize("code", FORMS)
def test_spans_are_those_of_the_provider(code: str) -> None:
    module = cst.parse_module(code)
    assert module.code == code
    spans = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    places = NodeSpans(module, code.encode())
    for node, start, end in zip(places.nodes, places.starts, places.ends, strict=True):
        found = spans[node]
        same = (start, end) == (found.start, found.start + found.length)
        assert same or own_parentheses(node) or decorated(node) or isinstance(node, OURS), node


def test_the_provider_and_we_differ_on_purpose() -> None:
    def text(code: str, kind: type) -> str:
        places = places_of(code)
        index = next(i for i, node in enumerate(places.nodes) if isinstance(node, kind))
        return code.encode()[places.starts[index] : places.ends[index]].decode()

    assert text("f(( (a, b) ))\n", cst.Tuple) == "(a, b)"
    assert text("f(( ))\n", cst.Tuple) == "( )"
    assert text("f((x for x in y), 1)\n", cst.GeneratorExp) == "(x for x in y)"
    assert text("f(x for x in y)\n", cst.GeneratorExp) == "x for x in y"
    assert text("((a)) + b\n", cst.Name) == "a"
    block = text("class A:\n    # c\n    @a\n    def f(self): pass\n", cst.IndentedBlock)
    assert block == "@a\n    def f(self): pass"
    assert text("def f(* é: int): pass\n", cst.Param) == "é"


@pytest.mark.parametrize("code", LOSSY)
def test_what_the_tree_loses_is_found_in_the_text(code: str) -> None:
    module = cst.parse_module(code)
    assert module.code != code
    places = NodeSpans(module, code.encode())
    names = [
        (node.value, code.encode()[start:end].decode())
        for node, start, end in zip(places.nodes, places.starts, places.ends, strict=True)
        if isinstance(node, cst.Name)
    ]
    assert len(names) == sum(token.isidentifier() and token not in KEYWORDS for token in words(code))
    assert all(text == value for value, text in names)


KEYWORDS = {"if", "else", "def", "pass", "try", "except"}


def words(code: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in code).split()


@pytest.mark.parametrize("gap", [" ", "\f\t\\\r\n  "])
def test_white_space_between_any_two_tokens(gap: str) -> None:
    """Either LibCST does not accept it, or every text is found in its place: `Places` raises otherwise."""
    walked = 0
    for code in FORMS:
        for cut in sorted(cuts(code)):
            spaced = code[:cut] + gap + code[cut:]
            try:
                module = cst.parse_module(spaced)
            except cst.ParserSyntaxError:
                continue
            NodeSpans(module, spaced.encode())
            walked += 1
    assert walked > 1000


def cuts(code: str) -> set[int]:
    """Offsets at which a token begins or ends."""
    lines = [0]
    for line in code.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(code, newline="").readline):
            if token.string.strip():
                found |= {lines[row - 1] + column for row, column in (token.start, token.end)}
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found


@pytest.mark.parametrize(
    ("parsed", "text"),
    [("f(x)\n", "f(y)\n"), ("x = 1\n", "x = 1\n\n"), ("x\n", ""), ("a + b\n", "a - b\n"), ("é\n", "e\n")],
)
def test_a_tree_of_another_text_is_refused(parsed: str, text: str) -> None:
    with pytest.raises(Misplaced):
        NodeSpans(cst.parse_module(parsed), text.encode())


def test_a_wrong_recipe_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**OTHERS, cst.Comma: lambda n: (n.whitespace_after, ",", n.whitespace_before)}
    monkeypatch.setattr(libcst_walk, "OTHERS", wrong)
    places_of("f(a,b)\n")
    with pytest.raises(Misplaced, match="expected ','"):
        places_of("f(a, b)\n")


def test_a_node_without_a_recipe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {kind: recipe for kind, recipe in OTHERS.items() if kind is not cst.Comma}
    monkeypatch.setattr(libcst_walk, "OTHERS", fewer)
    with pytest.raises(Misplaced, match="Comma has no recipe"):
        places_of("f(a,b)\n")


def test_nodes_come_in_source_order_and_outer_ones_first() -> None:
    for code in FORMS:
        places = places_of(code)
        # Not so blocks: comments above the first statement stand before their beginning.
        spans = [
            (start, -end)
            for node, start, end in zip(places.nodes, places.starts, places.ends, strict=True)
            if not isinstance(node, cst.IndentedBlock)
        ]
        assert spans == sorted(spans)


@pytest.mark.parametrize(
    "code",
    [
        "x = " + "+".join(["a"] * 1200) + "\n",
        "x = a" + ".a" * 1200 + "\n",
        "if a: pass\n" + "elif b: pass\n" * 1200,
        "x = " + "(" * 900 + "a" + ")" * 900 + "\n",
        "x = " + "lambda: " * 900 + "0\n",
    ],
    ids=["operators", "attributes", "elif", "parentheses", "lambdas"],
)
def test_a_deep_tree_is_walked_without_recursion(code: str) -> None:
    places = places_of(code)
    assert max(places.ends) == len(code) - 1


def test_the_forms_hold_every_kind_of_node() -> None:
    seen: set[type] = set()
    for code in FORMS:
        todo: list[cst.CSTNode] = [cst.parse_module(code)]
        while todo:
            node = todo.pop()
            seen.add(type(node))
            todo += node.children
    missing = (EXPRESSIONS.keys() | STATEMENTS.keys() | OTHERS.keys()) - seen - set(LIGHT.values())
    assert {kind.__name__ for kind in missing} == {"Elif"}
