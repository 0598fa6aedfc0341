"""What a permission callback is asked, and what it may answer."""

import pytest

from thoughtline.agents.tools.permissions import Ask, Verdict, parse_reply
from thoughtline.log.parts import Call


def test_what_a_permission_callback_may_say():
    assert parse_reply("always") == (Verdict.ALWAYS, "")
    assert parse_reply(True) == (Verdict.ALLOW, "")
    assert parse_reply((False, "not today")) == (Verdict.DENY, "not today")
    with pytest.raises(Exception, match="answered 'perhaps'; expected `allow`, `deny` or"):
        parse_reply("perhaps")


def test_what_it_is_asked():
    ask = Ask(call=Call(name="rm", arguments='{"path": "/"}', id="1"), session="s")
    assert (ask.tool, ask.arguments) == ("rm", {"path": "/"})
    assert Ask(call=Call(name="rm", arguments="{"), session="s").arguments == "{"
