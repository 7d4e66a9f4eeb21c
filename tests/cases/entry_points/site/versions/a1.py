def upgrade():  # migration upgrade alembic
    pass


def create_table():
    pass
