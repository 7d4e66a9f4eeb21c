"""Rules of the value analysis: functions over a `State`.

`analysis` enters the rule for each operation in its tables. Most rules subscribe to the node of the first
operand, and are called with the state, each object of the node, present and future, and the other operands:

    def add_generator_result(state: State, obj: Object, dst: int) -> None: ...
    CALLS = {ir.OP_YIELD_FROM: on(add_generator_result, NODE), ...}

The others are called with the state, the file and the operation. Modules, from those that use others to those
that use none:

    calls         call objects, by the kind of the object (`CALL_RULES`)
    classes       class statements and instantiation
    fixtures      what pytest passes to tests and fixtures
    assumptions   values where the repository alone shows none
    operators     special methods of operators, results of builtin operands
    attributes    read attributes, by the kind of the object (`ATTRIBUTE_RULES`); store and delete them
    imports       imports, and names bound outside of the file
    functions     enter functions: arguments, results
    objects       create objects; instances of classes, annotations, exceptions
    protocols     iterate, unpack, await, `with`
    containers    elements of containers, subscripts
"""
