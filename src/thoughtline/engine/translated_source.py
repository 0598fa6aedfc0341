"""A request in one dialect for a provider that speaks another, over the same engine.

The client's turns are looked up as always: keys do not depend on a dialect. What goes upstream for
a turn that the log knows is the provider's own turn, as it emitted it: ids, argument text, order
and thoughts; what the log does not know is written from the client's echo. `TranslatedSource`
writes a new body for every request, deterministically: the provider's prefix only ever grows.
"""

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from itertools import count

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect, Request
from thoughtline.dialects.content import answered_calls
from thoughtline.dialects.params import RequestParams, ToolSpec
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.engine.caller import Incoming
from thoughtline.engine.client_source import ClientSource
from thoughtline.engine.decision import Composed, Fields, Found, RequestDecision, Source
from thoughtline.engine.history import missing_result, with_thoughts, without_thoughts
from thoughtline.engine.normalise import Normalised
from thoughtline.engine.offload import run_aside
from thoughtline.engine.parted_calls import joined_turns
from thoughtline.engine.request_template import RequestTemplate
from thoughtline.engine.server_state import recall, references
from thoughtline.engine.translation import Translation
from thoughtline.engine.turn_ids import client_call_id
from thoughtline.errors import StoreError, ThoughtlineError
from thoughtline.log.canonical import canonical_arguments, trimmed
from thoughtline.log.handles import Handles
from thoughtline.log.parts import Blob, Call, Note, Part, Result, Text, ToolKind
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn
from thoughtline.replay.guard import Target
from thoughtline.replay.match import RequestPath, request_path
from thoughtline.replay.plan import ReplayPlan
from thoughtline.stores.base import Store

NOTHING_BACK = ReplayPlan(decisions=())
_LOST_RESULT = "result_without_call"
_LOST_CALL = "call_without_result"


class TranslatedSource(ClientSource):
    """Looks turns up in the store, and writes the body from the log."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        translation: Translation,
        provider: Dialect,
        target: Target,
    ) -> None:
        super().__init__(store, translation.tenant, clock, provider)
        self._translation = translation
        self._target = target
        self._takes = target.policy.takes
        self._logged: dict[str, Turn] = {}  # by id
        asked = provider.param_fields(_flat(translation), self._takes)
        self.template = RequestTemplate(
            dialect=provider,
            target=target,
            model=target.origin.model,
            system=translation.params.system,
            tools=_allowed(translation),
            options=asked.fields,
            stream=translation.params.stream,
            cache_breakpoints=True,
        )
        self.left = (*translation.left, *asked.left)

    @property
    def written(self) -> frozenset[str]:
        """The members of the body that say what is asked."""
        return frozenset(splice.members(self.template.write(())))

    async def look_up(self, path: RequestPath, known_turns: Collection[str]) -> tuple[Found, str]:
        """The index entries of a path, and the turns themselves from the log."""
        found, error = await super().look_up(path, known_turns)
        try:
            for session in {entry.session for entries in found.values() for entry in entries}:
                folded = Session(session).extend(await self._store.read(session))
                self._logged |= {turn.id: turn for turn in folded.whole_turns}
        except (StoreError, ThoughtlineError) as problem:
            return found, error or str(problem)
        return found, error

    def compose(
        self, request: Request, path: RequestPath, plan: ReplayPlan, fields: Fields
    ) -> Composed:
        return Composed(self.template.write(self._turns(path, plan), fields))

    def params(self, request: Request) -> bytes:
        return request.body or self.template.params

    def readable(self, decision: RequestDecision) -> Request:
        return self.template.read(self.template.write(self._turns(decision.path, NOTHING_BACK)))

    def _turns(self, path: RequestPath, plan: ReplayPlan) -> Sequence[Turn]:
        """The turns as they go upstream."""
        known = {d.turn: self._logged[d.entry] for d in plan.decisions if d.entry in self._logged}
        placed = {revision.turn: revision.thoughts for revision in plan.revisions}
        inputs = self._translation.params.inputs
        turns: list[Turn] = []
        echoed: tuple[Part, ...] = ()  # the output before, as the client has it
        for index, turn in enumerate(path.turns):
            given = inputs[index] if index < len(inputs) else turn.input
            logged = known.get(index)
            output = self._output(turn, logged)
            turns.append(
                replace(
                    logged or turn,
                    input=self._input(given, echoed, turns[-1].calls if turns else ()),
                    output=with_thoughts(output, placed.get(index, ())),
                )
            )
            echoed = turn.output
        behind = inputs[len(path.turns) :]  # instructions after the last answer
        turns += [Turn(input=self._input(given, echoed, turns[-1].calls)) for given in behind]
        return turns

    def _output(self, echo: Turn, logged: Turn | None) -> tuple[Part, ...]:
        """An output as its provider made it, or as far as the client has it."""
        if logged is None:
            names = self._translation.names
            said = [part for part in echo.output if isinstance(part, Text)]
            calls = [part for part in echo.output if isinstance(part, Call)]
            return (*said, *map(names.to_provider, calls))
        own = [self._as_function(part) for part in without_thoughts(logged.output)]
        there = logged.target
        if there is not None and there.provider == self._target.origin.provider:
            return tuple(own)
        nth = count()
        return tuple(
            replace(part, id=client_call_id(logged.id, next(nth)), item="", raw="")
            if isinstance(part, Call)
            else part
            for part in own
        )

    def _as_function(self, part: Part) -> Part:
        """A part as the provider takes it: a call may be of a tool that only its client knows."""
        if not isinstance(part, Call):
            return part
        names = self._translation.names
        plain = (
            part.kind is ToolKind.FUNCTION and names.flat(part.name, part.namespace) == part.name
        )
        return part if plain else names.to_provider(part)

    def note_unpaired(self, turns: Sequence[Turn]) -> None:
        """Note which results and calls of a client's history have no partner."""
        inputs = self._translation.params.inputs
        echoed: tuple[Part, ...] = ()
        for index in range(max(len(turns), len(inputs))):
            turn = turns[index] if index < len(turns) else Turn()
            parts = inputs[index] if index < len(inputs) else turn.input
            for name in _unpaired(parts, echoed):
                if name not in self.left:
                    self.left = (*self.left, name)
            echoed = turn.output

    def _input(
        self, parts: Sequence[Part], echoed: Sequence[Part], calls: Sequence[Call]
    ) -> tuple[Part, ...]:
        """An input with its results first, under the ids of the calls that go upstream.

        No provider takes a result without its call, or a call without its result. A result whose
        call is gone is left out, and so is one that is told again, as Gemini CLI does when it
        resumes; a call that was interrupted gets a result that says so.
        """
        given = [_unprefixed(part, echoed) for part in parts if isinstance(part, Result)]
        results: list[Result] = []
        places = answered_calls(echoed, given)
        for result, place in zip(given, places, strict=True):
            if place is not None and place < len(calls):
                results.append(replace(result, call=calls[place].id, name=calls[place].name))
        results += [missing_result(call) for at, call in enumerate(calls) if at not in places]
        said: list[Part] = [part for part in parts if not isinstance(part, Result)]
        if not self._takes.late_system:
            said = [Text(text=part.text) if isinstance(part, Note) else part for part in said]
        if self._dialect.joins_texts:
            said = _apart(said)
        if self._takes.media_in_results:
            return (*results, *said)
        return (*[replace(result, media=()) for result in results], *_shown(results), *said)

    def prefixes(self, path: RequestPath) -> Sequence[str]:
        """The digests of what stands before each output, whatever its client did to the spelling.

        What goes upstream for a known turn is the provider's own, so only what is said counts.
        """
        if not self._target.policy.prefix:
            return ()
        plain = tuple(replace(turn, output=_plain(turn.output)) for turn in path.turns)
        turns = self._turns(replace(path, turns=plain), NOTHING_BACK)
        return self.template.prefixes(turns, len(plain))

    def joined(
        self, decision: RequestDecision, groups: Sequence[range]
    ) -> tuple[Source, Request, RequestPath]:
        path = decision.path
        joined = self._with(self._translation.with_joined(path.turns, groups))
        made = request_path(joined_turns(path.turns, groups))
        places = _joined_places(len(path.turns), groups)
        handles = {places[turn]: named for turn, named in path.handles.items()}
        path = replace(
            path, turns=made.turns, keys=made.keys, rolling_key=made.rolling_key, handles=handles
        )
        path = replace(path, prefixes=tuple(joined.prefixes(path)))
        return joined, replace(decision.request, turns=path.turns), path

    def _with(self, translation: Translation) -> "TranslatedSource":
        """The same, with another reading of what the client asks."""
        made = copy(self)
        made._translation = translation  # noqa: SLF001 (a copy of this one)
        return made

    async def continued(self, decision: RequestDecision) -> tuple[Turn, ...]:
        return ()


def _joined_places(count: int, groups: Sequence[range]) -> list[int]:
    """Where each of `count` turns is once those of each group are one."""
    inside = {turn for group in groups for turn in group[1:]}
    return [turn - sum(other <= turn for other in inside) for turn in range(count)]


def _apart(parts: Sequence[Part]) -> list[Part]:
    """The parts with a blank line between texts in a row: they were messages of their own."""
    made: list[Part] = []
    for part in parts:
        last = made[-1] if made else None
        if isinstance(part, Text) and isinstance(last, Text):
            made[-1] = Text(text=f"{last.text}\n\n{part.text}")
        else:
            made.append(part)
    return made


def _shown(results: Sequence[Result]) -> list[Part]:
    """The media of results, for a provider that takes them from a user only."""
    made: list[Part] = []
    for result in results:
        if result.media:
            made += [Text(text=f"What the tool call {result.call} showed:"), *result.media]
    return made


def _unpaired(parts: Sequence[Part], output: Sequence[Part]) -> Iterator[str]:
    """What of an input and the output before it is not sent as it is: it lacks its partner."""
    given = [_unprefixed(part, output) for part in parts if isinstance(part, Result)]
    places = answered_calls(output, given)
    if any(place is None and given[at] not in given[:at] for at, place in enumerate(places)):
        yield _LOST_RESULT
    calls = [part for part in output if isinstance(part, Call)]
    if len(calls) > sum(place is not None for place in places):
        yield _LOST_CALL


def _unprefixed(result: Result, output: Sequence[Part]) -> Result:
    """A result whose client put the tool's name before the call's id."""
    ids = {part.id for part in output if isinstance(part, Call)}
    bare = result.call.rpartition("__")[2]
    return replace(result, call=bare) if result.call not in ids and bare in ids else result


def _flat(translation: Translation) -> RequestParams:
    """What is asked, with the tools that the provider is told of and their names."""
    params, choice = translation.params, translation.params.tool_choice
    if choice is None or not choice.names:
        return params
    names = tuple(translation.names.chosen(name) for name in choice.names)
    tools = tuple(_allowed(translation))
    return replace(params, tools=tools, tool_choice=replace(choice, names=names))


def _allowed(translation: Translation) -> list[ToolSpec]:
    """The tools that the provider is told of: all, or those that the client allows."""
    functions, choice = translation.names.functions, translation.params.tool_choice
    if choice is None or not choice.names or (choice.mode == "required" and len(choice.names) == 1):
        return functions
    allowed = {translation.names.chosen(name) for name in choice.names}
    return [function for function in functions if function.name in allowed]


async def translated(
    asked: Incoming, provider: Dialect, handles: Handles, *, store: Store, clock: Clock
) -> Incoming:
    """A client's request for a provider of another dialect, which is already its target."""
    client, target, tenant = asked.dialect, asked.target, asked.tenant
    recalled = await recall(
        asked.request, client, tenant, store, remembered=False, endpoint=target.origin.endpoint
    )

    def write() -> Incoming:
        params = client.params(recalled.request)
        translation = Translation(
            client=client,
            params=replace(params, effort=asked.effort) if asked.effort else params,
            names=ToolNames(params.tools),
            handles=handles,
            tenant=tenant,
            left=params.left,
            unknown_response=recalled.request.previous_response,
            refused=(
                *params.refused,
                *_unsayable(params, provider),
                *_unfollowed(recalled.request),
            ),
        )
        source = TranslatedSource(store, clock, translation, provider, target)
        path = _path(recalled.request, asked.hints, source)
        source.note_unpaired(path.turns)
        unwritten = source.template.unwritten(path.turns)
        return replace(
            asked,
            request=unwritten,
            dialect=provider,
            hints=(),  # they are in the path
            source=source,
            path=replace(
                path,
                thinking=unwritten.thinking,
                handles=_named(recalled.request, handles, tenant),
            ),
            normalised=Normalised(request=unwritten, known_turns=recalled.known_turns),
            translation=translation,
        )

    return await run_aside(write) if asked.heavy else write()


def _path(request: Request, hints: Sequence[str], source: TranslatedSource) -> RequestPath:
    """The client's history; what stands for thoughts in it is not of the provider."""
    path = request_path(
        [replace(turn, output=without_thoughts(turn.output)) for turn in request.turns],
        tools=request.tools,
        hints=list(dict.fromkeys((*hints, *request.hints))),
        group=request.shared_hint,
    )
    return replace(path, prefixes=tuple(source.prefixes(path)), from_log=True)


def _unfollowed(request: Request) -> Sequence[str]:
    """References to items that the log does not hold under their ids.

    Without its thought a turn is found all the same; without its calls it is another history.
    """
    return ["item_reference"] if any(not id.startswith("rs_") for id in references(request)) else ()


def _named(request: Request, handles: Handles, tenant: str) -> dict[int, str]:
    """The turns that the client names by handles, by their positions."""
    return {
        index: named
        for index, turn in enumerate(request.turns)
        for thought in turn.thoughts
        if thought.handle and (named := handles.turn(tenant, thought.handle))
    }


def _unsayable(params: RequestParams, provider: Dialect) -> list[str]:
    """The kinds of images and files that the provider cannot be shown."""
    given = [part for parts in params.inputs for part in parts]
    shown = [part for part in given if isinstance(part, Blob)]
    shown += [part for result in given if isinstance(result, Result) for part in result.media]
    return [
        part.kind if part.data or part.url else f"{part.kind}.file_id"
        for part in shown
        if not part.raw and not provider.says_media(part)
    ]


def _plain(output: Sequence[Part]) -> tuple[Part, ...]:
    """An output in the spelling in which clients' echoes are compared."""
    text = trimmed("".join(part.text for part in output if isinstance(part, Text)))
    calls = [
        replace(part, arguments=canonical_arguments(part.arguments).decode("utf-8", "replace"))
        for part in output
        if isinstance(part, Call)
    ]
    return (Text(text=text), *calls) if text else tuple(calls)
