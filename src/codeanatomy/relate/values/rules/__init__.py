"""RuleTables of the value analysis: functions over a `State`.

A rule for an operation is entered in the table `OPERATIONS` of its module, by operation code, and is called
with the state, the file and the operation. It adds edges and objects, or subscribes a function to a node,
which is then called with the state and each object of the node, present and future:

    def _apply_yield_from(state: State, file: int, op: ir.Op) -> None:
        state.subscribe(state.node(file, op[1]), add_generator_result, state.node(file, op[2]))

`analysis` joins the tables into rounds. Modules, from those that use others to those that use none:

    calls             call objects, by the kind of the object (`CALL_RULES`)
    classes           class statements and instantiation
    fixtures          what pytest passes to tests and fixtures
    assumptions       values where the repository alone shows none
    hints             annotations
    exceptions        raise and catch
    contexts          `with`
    operators         binary operators
    attribute_stores  store and delete attributes
    attributes        read attributes, by the kind of the object (`ATTRIBUTE_RULES`)
    imports           imports, and names bound outside of the file
    functions         enter functions: arguments, results
    objects           create objects; instances of classes
    iteration         iterate, unpack, await
    containers        elements of containers, subscripts
    special_methods   special methods that the language runs
"""
