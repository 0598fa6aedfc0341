"""What to try, in order, when a provider has refused a request: one function per strategy.

A strategy looks at a `Case` and gives corrections, the best one first; the first one that really
changes what is sent is tried. One that has nothing to try gives nothing. All of them are pure.
There is one module per way that thoughts travel: plain text, sealed items, signed blocks,
signatures. What a refusal in unlisted words names, and only we put in, is taken out (`added`).
"""

from collections.abc import Callable, Iterable, Mapping

from thoughtline.engine.recovery import added, blocks, items, parameters, plain, signatures
from thoughtline.engine.recovery.case import Case, Correction
from thoughtline.providers.errors import Strategy

Corrections = Callable[[Case], Iterable[Correction]]

STRATEGIES: Mapping[Strategy, Corrections] = {
    Strategy.RESTORE_ALL: plain.restore_all,
    Strategy.RESTORE_CALLS: plain.restore_calls,
    Strategy.RENAME: plain.rename,
    Strategy.DROP_REASONING: plain.drop_reasoning,
    Strategy.DROP_ITEM: items.drop_item,
    Strategy.PAIR_OR_ANONYMISE: items.pair_or_anonymise,
    Strategy.SEND_SEALED: items.send_sealed,
    Strategy.DEDUPLICATE: items.deduplicate,
    Strategy.DROP_SEALED: items.drop_sealed,
    Strategy.REPLAY_IN_FULL: items.replay_in_full,
    Strategy.RECONNECT: parameters.nothing,  # a matter of the socket, not of the request
    Strategy.SET_ALL_TURNS: parameters.set_all_turns,
    Strategy.SET_STORE_FALSE: parameters.set_store_false,
    Strategy.DROP_FIELD: parameters.drop_field,
    Strategy.DROP_BLOCK: blocks.drop_block,
    Strategy.STRIP_SIGNED: blocks.strip_signed,
    Strategy.RESTORE_EXACT: blocks.restore_exact,
    Strategy.RESTORE_OR_OFF: blocks.restore_or_off,
    Strategy.SIGN_OR_BYPASS: signatures.sign_or_bypass,
    Strategy.RESIGN: signatures.resign,
    Strategy.SHORT_CALL_IDS: parameters.short_call_ids,
    Strategy.KEEP_IDS: parameters.keep_ids,
    Strategy.SUMMARISE: parameters.summarise,
    Strategy.DROP_INCLUDE: parameters.drop_include,
    Strategy.TAKE_OUT: added.take_out,
    Strategy.DROP_COMPACTION: items.drop_compaction,
    Strategy.DROP_CONFIGURATION: items.drop_configuration,
    Strategy.DROP_FALLBACKS: blocks.drop_fallbacks,
    Strategy.DROP_BARE_THOUGHTS: blocks.drop_bare_thoughts,
    Strategy.DROP_SAMPLING: parameters.drop_sampling,
    Strategy.DROP_WEB_SEARCH: parameters.drop_web_search,
    Strategy.NAME_BETA: parameters.name_beta,
    Strategy.MOVE_EFFORT: parameters.move_effort,
    Strategy.NEAREST_VALUE: parameters.nearest_value,
}
