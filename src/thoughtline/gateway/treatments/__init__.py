"""Remedy → treatment: what to try, in order, when a provider has refused a request.

A treatment looks at a `Case` and gives changes, the best one first; whoever asks takes the first
one that really changes what is sent. A treatment that has nothing to try gives nothing. All of
them are pure. One module per carrier: plain text, sealed items, signed blocks, signatures.
"""

from collections.abc import Callable, Iterable, Mapping

from thoughtline.gateway.cases import Case, Change
from thoughtline.gateway.treatments import blocks, items, parameters, plain, signatures
from thoughtline.policies.remedies import Remedy

Treatment = Callable[[Case], Iterable[Change]]

TREATMENTS: Mapping[Remedy, Treatment] = {
    Remedy.RESTORE_ALL: plain.restore_all,
    Remedy.RESTORE_CALLS: plain.restore_calls,
    Remedy.RENAME: plain.rename,
    Remedy.DROP_REASONING: plain.drop_reasoning,
    Remedy.DROP_ITEM: items.drop_item,
    Remedy.PAIR_OR_ANONYMISE: items.pair_or_anonymise,
    Remedy.SEND_SEALED: items.send_sealed,
    Remedy.DEDUPLICATE: items.deduplicate,
    Remedy.DROP_SEALED: items.drop_sealed,
    Remedy.REPLAY_IN_FULL: items.replay_in_full,
    Remedy.RECONNECT: parameters.nothing,  # a matter of the socket, not of the request
    Remedy.SET_ALL_TURNS: parameters.set_all_turns,
    Remedy.SET_STORE_FALSE: parameters.set_store_false,
    Remedy.DROP_FIELD: parameters.drop_field,
    Remedy.DROP_BLOCK: blocks.drop_block,
    Remedy.STRIP_SIGNED: blocks.strip_signed,
    Remedy.RESTORE_EXACT: blocks.restore_exact,
    Remedy.RESTORE_OR_OFF: blocks.restore_or_off,
    Remedy.SIGN_OR_BYPASS: signatures.sign_or_bypass,
    Remedy.RESIGN: signatures.resign,
    Remedy.NINE_CHARACTERS: parameters.nine_characters,
    Remedy.KEEP_IDS: parameters.keep_ids,
    Remedy.SUMMARISE: parameters.summarise,
    Remedy.DROP_INCLUDE: parameters.drop_include,
}
