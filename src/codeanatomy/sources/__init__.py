"""Find, read and decode the files of a source: a folder, a wheel, an sdist or another archive.

archives         list the members of a zip or tar within limits
detect           list a source, whichever kind it is
digest           fingerprint a source by its paths and the bytes of its files
git              read commits, blobs and the index without running code of the repository
ignore_rules     match paths against patterns of `.gitignore`
listing          list the Python files of a folder, with the reason why others are skipped
packaging_files  read the entry points that packaging files declare
reading          read the bytes of listed files
root_package     find the package that the root of a source is
source_file      decode one file and index its lines
stored_objects   list the objects of a folder in an object store
"""
