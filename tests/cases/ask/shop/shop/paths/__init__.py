"""What leads where: paths, impact, flows, evidence."""
