from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional, Union

Handler = Callable[[int, str], bool]


def run(
    a: Optional[int],
    b: int | None,
    c: Union[str, bytes] = "",
    *d: tuple[int, ...],
    e: Literal["x", 1] = 1,
    f: Annotated[dict[str, Any], "note"] = {},
) -> Handler: ...
