from thoughtline.log.capabilities import Capabilities, EffortStyle


def test_the_defaults_are_what_most_endpoints_take():
    usual = Capabilities()
    assert usual.late_system
    assert usual.thinking_off
    assert usual.effort_style is EffortStyle.DIALECT
