"""Lists of models in the shape of every API."""

import pytest
from msgspec.json import encode

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.model_lists import Model


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("ids", [[], ["m-1"], ["owner/m:free", "é", "m-1"]])
def test_what_is_listed_for_clients_is_read_as_a_providers(name, ids):
    dialect = DIALECTS[name]
    models = [Model(id=id, owned_by="up") for id in ids]
    assert dialect.model_names(encode(dialect.model_shape.many(models))) == ids
    for model in models:
        (alone,) = dialect.model_names(encode(dialect.model_shape.many([model])))
        assert alone == model.id
