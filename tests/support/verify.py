"""Simulators to verify the policy table with."""

from msgspec.structs import replace

from support.gateway import SimWire
from thoughtline.agents.provider import Provider, resolve
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.clock import SystemClock
from thoughtline.testing.sims.chat import ChatSimulator
from thoughtline.testing.sims.chat_rows import ROWS as CHAT
from thoughtline.verify.report import CheckVerdict
from thoughtline.verify.verifier import verify


def provider(sim, model="", **more):
    name = sim.provider
    said = {"key": "k", "policy": POLICIES.get(name, name), "options": FIELDS.get(name, {}), **more}
    return Provider(
        name,
        model=model or sim.models()[0],
        base_url="http://sim",
        dialect=sim.dialect,
        **said,
    )


def deepseek(*checks, thinks=None):
    row = CHAT["deepseek"]
    row = replace(row, checks=(*row.checks[:-1], *checks), thinks=thinks or row.thinks)
    return ChatSimulator("deepseek", row)


PRO = "deepseek-v4-pro"


async def verified(sim, model="", *, other="", wire=None, **more):
    asked = provider(sim, model, **more)
    elsewhere = resolve(replace(asked, model=other), {}) if other else None
    return await verify(
        resolve(asked, {}), wire or SimWire(sim), SystemClock(), elsewhere=elsewhere
    )


def verdicts(report):
    return {row.name: row.verdict for row in report.rows}


def differing(report):
    return {name for name, verdict in verdicts(report).items() if verdict is CheckVerdict.DIFFERS}
