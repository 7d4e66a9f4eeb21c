from sqlalchemy.orm import Session

from models import User


class UserRepo:
    def __init__(self, session: Session):
        self.session = session

    def add(self, user: User) -> User:
        self.session.add(user)
        self.session.commit()
        user.touch()
        return user
