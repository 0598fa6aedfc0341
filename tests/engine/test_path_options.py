"""What stands in a path behind the upstream's name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.path_options import read_options, write_options
from thoughtline.engine.routes import parse
from thoughtline.errors import SettingsError

MODELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
DEEPSEEK = Upstream(name="deepseek", base_url="http://d", models=("deepseek-*",))


@given(pattern=MODELS.filter(lambda text: text != "effort"), model=MODELS)
def test_what_is_written_is_read_as_it_was_meant(pattern, model):
    options = write_options({pattern: model}, "high")
    route = parse("POST", f"/u/deepseek{options}/v1/messages")
    assert (route.upstream, route.path, route.dialect) == ("deepseek", "/v1/messages", "messages")
    (row,) = read_options(route.options).names.rows
    assert (row.pattern, row.model) == (pattern, model)
    assert read_options(route.options).effort == "high"
    assert parse("POST", f"{route.base}/v1/messages") == route


def picked(options, model):
    route = parse("POST", f"/u/deepseek{options}/v1/messages")
    found = Directory([DEEPSEEK]).pick(route.upstream, model, route.options)
    return found.served, found.asked, found.effort


def test_a_name_that_is_built_in_means_the_chosen_model():
    options = ";claude-*=deepseek-v4-pro;effort=low"
    assert picked(options, "claude-haiku-4-5") == ("deepseek-v4-pro", "claude-haiku-4-5", "low")
    assert picked(options, "deepseek-v4-flash") == ("", "", "low")
    assert picked(";effort=low", "claude-haiku-4-5") == ("", "", "low")
    assert picked(";;=x;claude-*;nothing=", "claude-haiku-4-5") == ("", "", "")


def test_a_simulated_model_can_be_meant(gateway_of_simulators):
    found = gateway_of_simulators.pick("sim", "claude-haiku-4-5", "claude-*=deepseek")
    assert (found.name, found.asked) == ("sim", "claude-haiku-4-5")


@pytest.fixture
def gateway_of_simulators():
    from thoughtline.agents import simulated

    return Directory((), simulated.upstream)


def test_an_effort_that_there_is_not():
    with pytest.raises(SettingsError, match="did you mean 'high'"):
        read_options("effort=hihg")
