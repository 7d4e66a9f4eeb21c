"""The commands, by what they are for; `codeanatomy.cli` puts them together."""
