"""Telemetry of a gateway in this process."""

from support.built_gateway import configured
from thoughtline.gateway.settings import LogSettings, UpstreamSettings
from thoughtline.log.decisions import Action, MatchLevel, ReplayDecision


def chatty(policy="deepseek", level="debug", **more):
    upstream = UpstreamSettings(name="up", base_url="http://sim", policy=policy)
    given = {"upstreams": {"up": upstream}, "log": LogSettings(level=level, format="json")}
    return configured(**given | more)


def decision(action, reason="", level=MatchLevel.NONE, entry=""):
    return ReplayDecision(turn=0, action=action, reason=reason, level=level, entry=entry)


RULINGS = (
    decision(Action.RESTORED, level=MatchLevel.FULL, entry="t1"),
    decision(Action.RESTORED, level=MatchLevel.LOCAL, entry="t2"),
    decision(Action.REPLACED, level=MatchLevel.FULL, entry="t3"),
    decision(Action.REPLACED, "renamed"),  # the client's own
    decision(Action.EXACT, level=MatchLevel.FULL, entry="t4"),
    decision(Action.ABSENT, "had none", MatchLevel.FULL, "t5"),
    decision(Action.ABSENT, "unknown"),
    decision(Action.ABSENT, "ambiguous"),
    decision(Action.ABSENT, "ignored there"),
    decision(Action.PLACEHOLDER, "ambiguous"),
    decision(Action.PLACEHOLDER, "foreign account", MatchLevel.FULL, "t6"),
    decision(Action.DROPPED, "foreign model", MatchLevel.CONTENT, "t7"),
    decision(Action.DROPPED, "forbidden", MatchLevel.FULL, "t8"),
)
