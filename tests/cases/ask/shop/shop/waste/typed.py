from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shop.waste.typing_user import User
else:
    from shop.waste import early


def greet(user: User):
    return early, user
