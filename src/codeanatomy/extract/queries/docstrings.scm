; docstrings 1
; The first statement of a module, class or function, where it is a string, also several side by side or in
; one pair of parentheses. `plain?` refuses bytes and formatted strings; `alone?` refuses the tuple `"a",`,
; whose comma is no named node. Captures that begin with an underscore are for these tests only.

(module
  . (comment)*
  . (expression_statement . [
      [(string) (concatenated_string)] @doc
      (parenthesized_expression . (comment)* . [(string) (concatenated_string)] @doc)
    ] @_value .) @_statement
  (#plain? @doc) (#alone? @_value @_statement)) @owner

(class_definition body: (block
  . (comment)*
  . (expression_statement . [
      [(string) (concatenated_string)] @doc
      (parenthesized_expression . (comment)* . [(string) (concatenated_string)] @doc)
    ] @_value .) @_statement)
  (#plain? @doc) (#alone? @_value @_statement)) @owner

(function_definition body: (block
  . (comment)*
  . (expression_statement . [
      [(string) (concatenated_string)] @doc
      (parenthesized_expression . (comment)* . [(string) (concatenated_string)] @doc)
    ] @_value .) @_statement)
  (#plain? @doc) (#alone? @_value @_statement)) @owner
