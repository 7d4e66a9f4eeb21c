"""Read a SCIP index without loading it as a whole.

documents   convert a document to cells of `scip_index_v1`
index_file  find the documents in the file, its metadata and its damage
schema      the protobuf messages that are read
"""
