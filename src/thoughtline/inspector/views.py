"""Turns and sessions as people see them. Pure: values in, shapes out."""

from collections.abc import Sequence

from thoughtline.durations import (
    THINKING,
    Span,
    reasoning_durations,
    spans,
    state,
    total,
    units_of,
    words,
)
from thoughtline.gateway.parameters import ANONYMOUS
from thoughtline.inspector.outlines import Outline
from thoughtline.inspector.rulings import counted, ruled, shown
from thoughtline.inspector.shapes import (
    BlobPart,
    CallPart,
    DecisionPart,
    Duration,
    PartShape,
    ReplayShape,
    ResultPart,
    SessionShape,
    TargetShape,
    TextPart,
    Thinking,
    ThoughtPart,
    TurnShape,
    UsageShape,
)
from thoughtline.parts import RIDING, Blob, Call, Decision, Part, Result, Text, Thought
from thoughtline.stores.base import Summary
from thoughtline.turns import Turn

UNKNOWN = Duration(state="unknown", seconds=None, label="Thought", started_at=None, buffered=False)


def session_shape(summary: Summary, outline: Outline, running: Sequence[Turn] = ()) -> SessionShape:
    """A session in a listing; `running` are its turns that are not written yet."""
    lines = list(outline.lines.values())
    extra = [turn for turn in running if turn.id not in outline.lines]
    targets = [turn.target for turn in extra if turn.target is not None]
    started = max((turn.started for turn in extra), default=0.0)
    named = {line.provider for line in lines} | {target.provider for target in targets}
    models = {line.model for line in lines} | {target.model for target in targets}
    counts = [line.counts for line in lines] + [counted(ruled(t.replay)) for t in extra]

    def sum_of(name: str) -> int:
        return sum(getattr(one, name) for one in counts)

    return SessionShape(
        id=summary.session,
        tenant=summary.tenant or ANONYMOUS,
        created=summary.created,
        touched=max(summary.touched, started),
        turns=len(lines) + len(extra),
        events=summary.events,
        status="running" if extra else outline.status,
        title=outline.title,
        providers=sorted(named - {""}),
        models=sorted(models - {""}),
        restored=sum_of("restored"),
        replaced=sum_of("replaced"),
        exact=sum_of("exact"),
        missed=sum_of("missed"),
        dropped=sum_of("dropped"),
        placeholder=sum_of("placeholder"),
        thoughts=outline.thoughts + sum(len(turn.thoughts) for turn in extra),
    )


def turn_shape(
    turn: Turn,
    *,
    thoughts: bool,
    replayed: int = 0,
    running: bool = False,
    most: int | None = None,
) -> TurnShape:
    """A turn; texts of its thoughts if `thoughts`, and at most so many of its rulings."""
    return TurnShape(
        id=turn.id,
        parent=turn.parent or None,
        started=turn.started,
        ended=turn.ended or None,
        outcome=str(turn.outcome) if turn.outcome else None,
        reason=turn.reason,
        running=running or turn.outcome is None,
        elsewhere=turn.outcome is None and not running,
        target=_target(turn),
        usage=_usage(turn),
        input=[_part(part) for part in turn.input if not isinstance(part, Thought)],
        output=_output(turn, thoughts=thoughts, replayed=replayed, running=running),
        reasoning_durations=reasoning_durations(turn),
        thinking=thinking(turn, running=running),
        replay=_replay(turn, most),
    )


def thinking(turn: Turn, *, running: bool = False) -> Thinking:
    """All thoughts of a turn together."""
    found = spans(turn)
    if any(state(span, running=running) == "open" for span in found):
        return Thinking(seconds=None, label=THINKING)
    seconds = total(turn)
    label = words(seconds, aborted=found[-1].aborted) if found else ""
    return Thinking(seconds=seconds, label=label)


def duration(span: Span, *, running: bool = False) -> Duration:
    """How long one thought took, or that it goes on."""
    what = state(span, running=running)
    return Duration(
        state=what,
        seconds=span.seconds,
        label=THINKING if what == "open" else span.text,
        started_at=span.at,
        buffered=span.requested,
    )


def _output(turn: Turn, *, thoughts: bool, replayed: int, running: bool) -> list[PartShape]:
    found = {span.place: span for span in spans(turn)}
    units = units_of(turn.output)
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
        barred = any(positions[id(thought)] in turn.quarantined for thought in unit)
        shapes.append(
            ThoughtPart(
                key=span.key if span else None,
                carrier=part.carrier.value,
                sealed=any(thought.sealed for thought in unit),
                bytes=sum(len((t.raw or t.text).encode("utf-8", "replace")) for t in unit),
                text=(span.summary if span else part.text) if thoughts else None,
                replayed=replayed,
                quarantined=barred,
                forgotten=any(thought.forgotten for thought in unit),
                duration=duration(span, running=running) if span else UNKNOWN,
            )
        )
    return shapes


def _part(part: Part) -> PartShape:
    match part:
        case Text():
            return TextPart(text=part.text)
        case Call():
            return CallPart(id=part.id, name=part.name, arguments=part.arguments)
        case Result():
            return ResultPart(
                call=part.call, name=part.name, content=part.content, error=part.error
            )
        case Decision():
            return DecisionPart(call=part.call, verdict=part.verdict, reason=part.reason)
        case Blob():
            return BlobPart(kind=part.kind)
        case Thought():  # of a client's echo; never part of a turn in the log
            return BlobPart(kind="thought")


def _target(turn: Turn) -> TargetShape | None:
    if turn.target is None:
        return None
    made = next((t.origin.model for t in turn.thoughts if t.origin is not None), "")
    return TargetShape(
        provider=turn.target.provider,
        endpoint=turn.target.endpoint,
        dialect=turn.target.dialect,
        model=made or turn.target.model,
    )


def _usage(turn: Turn) -> UsageShape | None:
    usage = turn.usage
    if usage is None:
        return None
    return UsageShape(
        input=usage.input, output=usage.output, reasoning=usage.reasoning, cached=usage.cached
    )


def _replay(turn: Turn, most: int | None) -> ReplayShape:
    rulings = ruled(turn.replay)
    counts = counted(rulings)
    last = rulings if most is None else rulings[-most:]
    return ReplayShape(
        **{name: getattr(counts, name) for name in counts.__struct_fields__},
        rulings=[shown(one) for one in last],
        more=len(rulings) - len(last),
    )
