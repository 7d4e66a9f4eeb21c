"""Read the report that pyrefly writes about a repository.

cells   convert a module of the report to cells of `type_checker_files_v1`
names   resolve numbers of the report to qualified names and spans
report  the JSON format of the report
"""
