"""What a cached store does not do itself goes to the store behind it, with all arguments."""

import inspect
from unittest.mock import Mock

import pytest

from thoughtline.stores.base import Store
from thoughtline.stores.cached import CachedStore

OWN = (
    *(
        "append",
        "find",
        "epoch",
        "continued",
        "purge",
        "forget",
        "erase",
        "reindex",
        "close",
        "shared",
    ),
    *("trouble", "learned", "damage"),
)
PASSED_ON = [name for name in vars(Store) if not name.startswith("_") and name not in OWN]


@pytest.mark.parametrize("name", PASSED_ON)
async def test_every_other_method_is_passed_on_with_all_arguments(name):
    behind = Mock(spec=Store)
    parameters = list(inspect.signature(getattr(CachedStore, name)).parameters.values())[1:]
    given = {one.name: object() for one in parameters}
    answer = getattr(CachedStore(behind), name)(**given)
    answer = await answer if inspect.isawaitable(answer) else answer
    handed = getattr(behind, name)
    assert answer is (handed.return_value if name != "touch" else None)
    [call] = handed.call_args_list
    assert [*call.args, *call.kwargs.values()] == [*given.values()]
