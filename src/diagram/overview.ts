import { optionsRule, expectArgument, objectRule } from '../core/base/values.js'
import {
  type Chart,
  type ChartState,
  type ChartTransition,
  flattenStates,
  unknownStateError,
} from './chart.js'
import { agentLook, isMainTransition, type Look } from './look.js'

/** The states of a machine, or of one of its states, and what leads from one to another. */
export interface Overview {
  /** In document order. */
  states: readonly OverviewState[]
  /** Of a state's overview: what lies outside it and is led to. Top-level states, in document order. */
  outside: readonly ChartState[]
  /** What the machine, or the state, itself declares: it holds in every state inside. */
  anywhere: readonly OverviewTransition[]
}

/** One of the states, and what leads out of it. */
export interface OverviewState {
  /** With all that is nested in it. */
  state: ChartState
  /** One for each state that it leads to. */
  transitions: readonly OverviewTransition[]
}

/** Everything that leads from one of the states to another. */
export interface OverviewTransition {
  /** The path of the other. */
  to: string
  /** What has to happen, each once. */
  events: readonly string[]
  /** Whether it is part of the look's main path. */
  main: boolean
  /** For each of `events`, the ids of the transitions that are meant. */
  causes: readonly (readonly string[])[]
}

/**
 * The ways from one top-level state to another, with what has to happen for each; or those from one of the states inside
 * `of` to another, and out of it.
 *
 * @throws {DiagramError} `unknown_state`
 * @example for (const { to, events } of toOverview(toChart(machine)).anywhere) console.log(to, events.join(', '))
 */
export function toOverview(chart: Chart, look: Look = agentLook, of?: string): Overview {
  expectArgument('toOverview(chart)', chart, objectRule(['root'], 'a chart: what toChart(machine) returned'))
  expectArgument('toOverview(chart, look)', look, optionsRule)
  const states = flattenStates(chart.root)
  const byId = new Map(states.map((state) => [state.id, state]))
  const shown = of === undefined ? chart.root : byId.get(of)
  if (!shown || shown.states.length === 0) throw unknownStateError(of ?? chart.id, chart)
  // A state inside has the place of its nearest one that is shown; outside, of the outermost.
  const topOf = new Map(
    [...chart.root.states, ...(shown === chart.root ? [] : shown.states)].flatMap((top) =>
      flattenStates(top).map(({ id }): [string, string] => [id, top.id]),
    ),
  )

  function waysOf(from: readonly ChartState[]): OverviewTransition[] {
    const ways = new Map<string, { causes: Causes; main: boolean }>()
    for (const state of from) {
      for (const transition of state.transitions) {
        for (const target of transition.targets) {
          const to = topOf.get(target)
          if (to === undefined || to === topOf.get(state.id)) continue
          const way = ways.get(to) ?? { causes: new Map(), main: false }
          way.main ||= isMainTransition(look, transition)
          for (const event of eventsOf(state, transition)) addCause(way.causes, event, [transition.id])
          ways.set(to, way)
        }
      }
    }
    return [...ways].map(([to, { causes, main }]) => {
      const brief = mergeActorCauses(causes)
      return { to, main, events: [...brief.keys()], causes: [...brief.values()] }
    })
  }

  /** What makes a machine take a transition. One without an event follows on those that led to its state. */
  function eventsOf(
    state: ChartState,
    transition: ChartTransition,
    seen: ReadonlySet<string> = new Set(),
  ): string[] {
    const outcome = formatOutcome(state, transition)
    if (transition.on !== '' && outcome === null) return [transition.on === '*' ? 'any event' : transition.on]
    // A guard with parameters goes by its name.
    const guard = transition.when?.split(' ')[0] ?? ''
    const words =
      look.words?.[guard] ?? (transition.on.startsWith('onError') ? undefined : look.words?.[state.id])
    if (words !== undefined) return [words]
    if (outcome !== null) return [outcome]
    const before = states.flatMap((source) =>
      source.transitions
        .filter(({ targets }) => targets.some((target) => entered(target).includes(state.id)))
        .map((leading) => ({ source, leading })),
    )
    const path = new Set([...seen, state.id])
    const events = before
      .filter(({ source }) => !path.has(source.id) && topOf.get(source.id) === topOf.get(state.id))
      .flatMap(({ source, leading }) => eventsOf(source, leading, path))
    return events.length > 0 || seen.size > 0 ? events : [state === chart.root ? 'always' : 'on entry']
  }

  /** The states that are entered for a target, down to the innermost. */
  function entered(target: string, above: readonly string[] = []): string[] {
    const initial = above.includes(target) ? [] : (byId.get(target)?.initial ?? [])
    return [target, ...initial.flatMap((id) => entered(id, [...above, target]))]
  }

  const tops = shown.states.map((state) => ({ state, transitions: waysOf(flattenStates(state)) }))
  const anywhere = waysOf([shown])
  const reached = new Set(
    [...anywhere, ...tops.flatMap(({ transitions }) => transitions)].map(({ to }) => to),
  )
  const inside = new Set(shown.states.map(({ id }) => id))
  const outside = chart.root.states.filter(({ id }) => reached.has(id) && !inside.has(id))
  return { states: tops, outside, anywhere }
}

const done = / is done$/
const fails = / fails$/
const anyDone = 'an actor is done'
const anyFails = 'an actor fails for good'

/** How an actor ended; null for events of other kinds. */
function formatOutcome({ invokes }: ChartState, { event, on }: ChartTransition): string | null {
  if (!/^on(Done|Error)\b/.test(on)) return null
  if (event.endsWith('.*')) return on.startsWith('onDone') ? anyDone : anyFails
  const src = invokes.find(({ id }) => event.endsWith(`.actor.${id}`))?.src ?? 'it'
  return on.startsWith('onDone') ? `${src} is done` : `${src} fails`
}

/** What has to happen, with the ids of the transitions that it makes a machine take. */
type Causes = Map<string, string[]>

function addCause(causes: Causes, event: string, ids: readonly string[]): void {
  const known = causes.get(event) ?? []
  causes.set(event, [...known, ...ids.filter((id) => !known.includes(id))])
}

/** More than two actors of which any will do need no names. */
function mergeActorCauses(causes: Causes): Causes {
  const many = (kind: RegExp): boolean => [...causes.keys()].filter((event) => kind.test(event)).length > 2
  const [manyDone, manyFail] = [many(done), many(fails)]
  const isMany = (event: string): boolean => (manyDone && done.test(event)) || (manyFail && fails.test(event))
  const brief: Causes = new Map([...causes].filter(([event]) => !isMany(event)))
  for (const [kind, word] of [[done, anyDone] as const, [fails, anyFails] as const]) {
    for (const [event, ids] of causes) if (isMany(event) && kind.test(event)) addCause(brief, word, ids)
  }
  return brief
}
