def run_migrations_online():  # migration run_migrations_online alembic
    pass
