from typing import Iterator


class Token:
    def text(self) -> str:
        return "t"


class Lexer:
    def tokens(self) -> Iterator[Token]:
        raise NotImplementedError


def parse(lexer: Lexer):
    return [token.text() for token in lexer.tokens()]
