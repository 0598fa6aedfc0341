"""Sessions, turns and requests in the shapes that the API answers with: values in, shapes out.

The bytes of a request are not stored. The turn's replay decisions say what was put in and what was
left out, and the log says which thoughts those were.
"""

from collections.abc import Mapping, Sequence

from msgspec import convert
from msgspec.structs import asdict, replace

from thoughtline.gateway.pages.page import ANONYMOUS
from thoughtline.inspector.outline import SessionOutline
from thoughtline.inspector.shapes import (
    BlobPart,
    CallPart,
    DecisionCounts,
    DecisionPart,
    DecisionShape,
    Duration,
    MessageShape,
    PartShape,
    ReplayShape,
    RequestShape,
    ResultPart,
    SessionShape,
    TargetShape,
    TextPart,
    Thinking,
    ThoughtChange,
    ThoughtPart,
    TurnShape,
    UsageShape,
)
from thoughtline.inspector.spending import Spending, TurnCost, spending, turn_cost
from thoughtline.inspector.timeline import first_token, timeline
from thoughtline.log.decisions import ReplayDecision, tally
from thoughtline.log.durations import (
    THINKING,
    ThoughtSpan,
    group_thoughts,
    reasoning_durations,
    thought_spans,
    thought_state,
    total_seconds,
    total_text,
)
from thoughtline.log.parts import RIDING, Blob, Call, Decision, Part, Result, Text, Thought
from thoughtline.log.titles import title_of
from thoughtline.log.turns import Turn
from thoughtline.providers.prices import PriceTable
from thoughtline.stores.base import SessionSummary

CHANGES_REQUEST = frozenset({"restored", "replaced", "placeholder", "dropped"})
NOT_HERE = ThoughtChange(carrier="", bytes=None, text=None)
"""A thought that only the client had, or that is in another session's log."""
UNKNOWN = Duration(state="unknown", seconds=None, label="Thought", started_at=None, buffered=False)

_PART_SHAPES: dict[type[Part], type[PartShape]] = {
    Text: TextPart,
    Call: CallPart,
    Result: ResultPart,
    Decision: DecisionPart,
    Blob: BlobPart,
}


def session_shape(
    summary: SessionSummary,
    outline: SessionOutline,
    running: Sequence[Turn] = (),
    *,
    prices: PriceTable | None = None,
    damaged: bool = False,
) -> SessionShape:
    """A session in a listing; `running` are its turns that are not written yet."""
    turns = list(outline.turns.values())
    extra = [turn for turn in running if turn.id not in outline.turns]
    targets = [turn.target for turn in extra if turn.target is not None]
    started = max((turn.started for turn in extra), default=0.0)
    providers = {turn.provider for turn in turns} | {target.provider for target in targets}
    models = {turn.model for turn in turns} | {target.model for target in targets}
    counts = outline.totals.copy()
    for turn in extra:
        before = len(outline.decisions(turn.parent)) if turn.parent in outline.turns else 0
        counts.update(tally(turn.replay[before:]))
    return SessionShape(
        id=summary.session,
        tenant=summary.tenant or ANONYMOUS,
        created=summary.created,
        touched=max(summary.touched, started),
        turns=len(turns) + len(extra),
        events=summary.events,
        status="running" if extra else outline.status,
        title=outline.title,
        providers=sorted(providers - {""}),
        models=sorted(models - {""}),
        thoughts=outline.thoughts + sum(len(turn.thoughts) for turn in extra),
        restored=counts["restored"],
        replaced=counts["replaced"],
        exact=counts["exact"],
        missed=counts["missed"],
        tied=counts["tied"],
        dropped=counts["dropped"],
        placeholder=counts["placeholder"],
        thinking_off=sum(t.thinking_off for t in turns) + sum(t.thinking_off for t in extra),
        failed=sum(turn.outcome == "failed" for turn in turns),
        damaged=damaged or outline.damaged,
        spending=spending(outline.spent.items(), prices) if prices else Spending(),
    )


def turn_shape(
    turn: Turn,
    *,
    thoughts: bool,
    replayed: int = 0,
    running: bool = False,
    max_decisions: int | None = None,
    counts: DecisionCounts | None = None,
    prices: PriceTable | None = None,
) -> TurnShape:
    """A turn; with the texts of its thoughts if `thoughts`, and its last `max_decisions`.

    `counts` are those of its decisions, where they are known.
    """
    target = _target(turn)
    cost = TurnCost()
    if prices and target:
        cost = turn_cost(target.provider, target.model, target.endpoint, turn.usage, prices)
    return TurnShape(
        id=turn.id,
        parent=turn.parent or None,
        started=turn.started,
        ended=turn.ended or None,
        outcome=str(turn.outcome) if turn.outcome else None,
        reason=turn.reason,
        running=running or turn.outcome is None,
        elsewhere=turn.outcome is None and not running,
        target=target,
        usage=convert(turn.usage, UsageShape | None, from_attributes=True),
        input=[_part(part) for part in turn.input if not isinstance(part, Thought)],
        output=_output(turn, thoughts=thoughts, replayed=replayed, running=running),
        reasoning_durations=reasoning_durations(turn),
        thinking=thinking(turn, running=running),
        replay=_replay(turn, max_decisions, counts),
        cost=cost.amount,
        cost_approximate=cost.approximate,
        timeline=[] if running else timeline(turn),
        first_token=first_token(turn),
        client=turn.client.dialect if turn.client else "",
        tools=turn.tools,
    )


def thinking(turn: Turn, *, running: bool = False) -> Thinking:
    """How long all thoughts of a turn took together."""
    found = thought_spans(turn)
    if any(thought_state(span, running=running) == "open" for span in found):
        return Thinking(seconds=None, label=THINKING)
    return Thinking(seconds=total_seconds(turn), label=total_text(turn))


def duration(span: ThoughtSpan, *, running: bool = False) -> Duration:
    """How long one thought took, or that it is still open."""
    now = thought_state(span, running=running)
    return Duration(
        state=now,
        seconds=span.seconds,
        label=THINKING if now == "open" else span.text,
        started_at=span.at,
        buffered=span.requested,
    )


def _output(turn: Turn, *, thoughts: bool, replayed: int, running: bool) -> list[PartShape]:
    found = {span.place: span for span in thought_spans(turn)}
    units = group_thoughts(turn.output)
    positions = {id(thought): n for n, thought in enumerate(turn.thoughts)}
    shapes: list[PartShape] = []
    for place, part in enumerate(turn.output):
        if not isinstance(part, Thought):
            if not running or not isinstance(part, Text):  # a text that is growing is not shown
                shapes.append(_part(part))
            continue
        span = found.get(place)
        if span is None and part.carrier not in RIDING:
            continue  # another part of a thought that is shown already
        unit = units.get(place, [part])
        quarantined = any(positions[id(thought)] in turn.quarantined for thought in unit)
        shapes.append(
            ThoughtPart(
                key=span.key if span else None,
                carrier=part.carrier.value,
                sealed=any(thought.sealed for thought in unit),
                bytes=sum(len((t.raw or t.text).encode("utf-8", "replace")) for t in unit),
                text=(span.summary if span else part.text) if thoughts else None,
                replayed=replayed,
                quarantined=quarantined,
                forgotten=any(thought.forgotten for thought in unit),
                damaged=any(thought.unreadable for thought in unit),
                duration=duration(span, running=running) if span else UNKNOWN,
            )
        )
    return shapes


def _part(part: Part) -> PartShape:
    if isinstance(part, Thought):  # of a client's echo; never part of a turn in the log
        return BlobPart(kind="thought")
    shape: PartShape = convert(part, _PART_SHAPES[type(part)], from_attributes=True)
    return shape


def _target(turn: Turn) -> TargetShape | None:
    if turn.target is None:
        return None
    served = next((t.origin.model for t in turn.thoughts if t.origin is not None), "")
    shape = convert(turn.target, TargetShape, from_attributes=True)
    return replace(shape, model=served or shape.model)


def _replay(
    turn: Turn, max_decisions: int | None, counts: DecisionCounts | None = None
) -> ReplayShape:
    decisions = turn.replay
    counts = counts or convert(tally(decisions), DecisionCounts)
    last = decisions if max_decisions is None else decisions[-max_decisions:]
    return ReplayShape(
        **asdict(counts),
        decisions=[decision_shape(one, turn) for one in last],
        more=len(decisions) - len(last),
        unread=len(turn.unread),
        thinking_off=turn.thinking_off,
    )


def decision_shape(decision: ReplayDecision, asked: Turn) -> DecisionShape:
    """What was decided about one earlier output, in the request of a turn."""
    kept = (one.kind for one in asked.unread if one.turn and one.turn == decision.entry)
    return DecisionShape(
        turn=decision.entry or None,
        position=decision.turn,
        action=decision.action.value,
        reason=decision.reason,
        level=decision.level.value,
        thoughts=decision.thoughts,
        left=decision.left,
        unread=next(kept, ""),
    )


# -- requests ------------------------------------------------------------------------------------


def request_shape(turn: Turn, known: Mapping[str, Turn], *, thoughts: bool) -> RequestShape:
    """The request of a turn; `known` are the turns that its decisions are about, by id."""
    messages = [
        _earlier_output(one, turn, known.get(one.entry), thoughts=thoughts) for one in turn.replay
    ]
    position = messages[-1].position + 1 if messages else 0
    if turn.input:
        messages.append(
            MessageShape(
                position=position,
                role="tool" if any(isinstance(p, Result) for p in turn.input) else "user",
                turn=turn.id,
                preview=preview(turn.input),
                changed=False,
                added=[],
                removed=[],
                decision=None,
            )
        )
    return RequestShape(messages=messages)


def preview(parts: Sequence[Part]) -> str:
    """The first words of a message; without any, the tools it calls or the results it brings."""
    if words := title_of(parts):
        return words
    calls = [part.name for part in parts if isinstance(part, Call)]
    if calls:
        return f"calls {', '.join(calls)}"
    return title_of(Text(text=part.content) for part in parts if isinstance(part, Result))


def _earlier_output(
    one: ReplayDecision, asked: Turn, entry: Turn | None, *, thoughts: bool
) -> MessageShape:
    added: list[ThoughtChange] = []
    removed: list[ThoughtChange] = []
    if one.action in ("restored", "replaced"):
        added = _changes(_usable(entry), one.thoughts, thoughts=thoughts)
    if one.action == "placeholder":
        added = [ThoughtChange(carrier="placeholder", bytes=None, text=None)]
    if one.action == "replaced":
        removed = [NOT_HERE] * max(one.left, 1)
    elif one.action == "dropped":
        removed = _changes(entry.thoughts if entry else (), one.left, thoughts=thoughts)
    return MessageShape(
        position=one.turn,
        role="assistant",
        turn=one.entry or None,
        preview=preview(entry.output) if entry else "",
        changed=one.action in CHANGES_REQUEST,
        added=added,
        removed=removed,
        decision=decision_shape(one, asked),
    )


def _usable(entry: Turn | None) -> list[Thought]:
    if entry is None:
        return []
    return [t for n, t in enumerate(entry.thoughts) if n not in entry.quarantined]


def _changes(known: Sequence[Thought], count: int, *, thoughts: bool) -> list[ThoughtChange]:
    """`count` changes: of the known thoughts where their number fits, else of unknown ones."""
    if len(known) != count:
        return [NOT_HERE] * count
    return [
        ThoughtChange(
            carrier=thought.carrier.value,
            bytes=len(thought.raw.encode("utf-8", "replace")),
            text=thought.text if thoughts else None,
        )
        for thought in known
    ]
