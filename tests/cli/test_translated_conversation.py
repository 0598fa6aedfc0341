from thoughtline.cli.translated_conversation import TranslatedConversation
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator


async def test_every_thought_goes_back_though_the_client_keeps_none():
    sim = simulator("kimi")
    conversation = TranslatedConversation(
        sim, model=sim.models()[0], speaks="messages", store=MemoryStore()
    )
    await conversation.run(6)
    assert sim.requests[-1].audit.clean
    assert sim.requests[-1].audit.exact > 0
