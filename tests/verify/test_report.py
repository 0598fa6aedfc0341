"""What a report concludes from its checks, and writes down."""

import tomllib

import pytest
from msgspec.structs import replace

from support.verify import differing, verified
from thoughtline.testing import simulator
from thoughtline.testing.sims.messages import MessagesSimulator
from thoughtline.testing.sims.messages_rows import ROWS as MESSAGES
from thoughtline.testing.sims.responses import ResponsesSimulator
from thoughtline.testing.sims.responses_rows import ROWS as RESPONSES
from thoughtline.verify.report import CheckVerdict, Observed, toml


async def test_a_seal_that_another_model_takes_proves_nothing():
    report = await verified(simulator("openai"), "gpt-5.6", other="gpt-5")
    rows = {row.name: row for row in report.rows}
    assert rows["other-model"].observed is Observed.ACCEPTED
    assert rows["other-model"].verdict is CheckVerdict.UNKNOWN and report.override == {}


@pytest.mark.parametrize(("name", "found"), [("openai", "by id"), ("xai", "not checked")])
async def test_how_items_are_paired_is_found_out(name, found):
    report = await verified(simulator(name))
    assert report.findings == {"pairing": found}


async def test_a_seal_that_is_not_verified_never_loosens_a_guard():
    row = replace(RESPONSES["xai"], style=None)
    report = await verified(ResponsesSimulator("xai", row))
    assert "binds" not in report.override
    row = replace(MESSAGES["claude"], binding="none")
    report = await verified(MessagesSimulator("claude", row))
    assert "altered" in differing(report) and "binds" not in report.override


async def test_a_file_without_differences_says_so():
    text = toml(await verified(simulator("kimi")))
    assert "Nothing differs" in text and tomllib.loads(text)["policies"][0]["policy"] == "kimi"
