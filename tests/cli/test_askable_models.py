"""Each model that is listed can be asked for by the name that it is listed with."""

from thoughtline.cli.askable_models import AskableModel, askable, model_line
from thoughtline.cli.launch_plan import choose_model
from thoughtline.cli.launch_tools import find_tool
from thoughtline.gateway.settings import load


def test_every_name_that_is_listed_can_be_launched(folder):
    settings = load({}, {"HOME": str(folder)}, folder)
    for provider in askable(settings):
        for model in provider.models:
            chosen = choose_model(find_tool("codex"), model.name, settings)
            assert chosen.name == model.name


def test_what_is_not_known_is_left_out():
    assert model_line(AskableModel(name="a/b")) == "a/b"
    about = AskableModel(name="a/b", input=1.5, output=3, approximate=True, context=262_144)
    assert model_line(about).split() == ["a/b", "262k", "≈", "$1.5", "in,", "$3", "out"]


def test_a_price_of_ones_own_leaves_a_models_context_known(tmp_path):
    (tmp_path / "thoughtline.toml").write_text('[prices."deepseek-*"]\ninput = 1.0\n')
    settings = load({}, {"DEEPSEEK_API_KEY": "d"}, tmp_path)
    (found,) = [one for one in askable(settings) if one.name == "deepseek"]
    (model,) = [one for one in found.models if one.name == "deepseek/deepseek-v4-pro"]
    assert (model.input, model.context) == (1.0, 1_000_000)
