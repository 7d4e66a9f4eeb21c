"""Bytes into evidence: sources, and one pure function per witness. No Spark in here."""
