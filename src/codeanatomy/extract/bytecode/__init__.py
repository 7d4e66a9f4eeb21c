"""Decode the instructions of a code object.

instructions  opcodes, arguments and jump targets
stack_depth   stack depth before each instruction
"""
