"""The commands, by what they are for; `codeanatomy.cli.main` puts them together."""
