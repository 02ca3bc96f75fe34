import { type Chart, type ChartState, type ChartTransition, withNested } from './chart.js'
import { agentLook, isMain, type Look } from './look.js'

/**
 * The top-level states of a machine, and what leads from one to another.
 *
 * @example
 * const { tops, anywhere }: Overview = overviewOf(chartOf(agentMachine), agentLook)
 */
export interface Overview {
  /** In document order. */
  tops: readonly Top[]
  /** What the machine itself declares: it holds in every state. */
  anywhere: readonly Way[]
}

/**
 * A top-level state, and what leads out of it.
 *
 * @example
 * const names = overviewOf(chartOf(agentMachine), agentLook).tops.map(({ state }: Top) => state.key)
 */
export interface Top {
  /** With all that is nested in it. */
  state: ChartState
  /** One for each state that it leads to. */
  ways: readonly Way[]
}

/**
 * Everything that leads from one top-level state to another.
 *
 * @example
 * const ways = overviewOf(chartOf(agentMachine), agentLook).anywhere.map(({ events, to }: Way) => `${events} → ${to}`)
 */
export interface Way {
  /** The path of a top-level state. */
  to: string
  /** What has to happen, each once. */
  events: readonly string[]
  /** Whether it is part of the look's main path. */
  main: boolean
}

/**
 * The ways from one top-level state to another, with what has to happen for each.
 *
 * @example for (const { to, events } of overviewOf(chartOf(machine)).anywhere) console.log(to, events.join(', '))
 */
export function overviewOf(chart: Chart, look: Look = agentLook): Overview {
  const states = withNested(chart.root)
  const byId = new Map(states.map((state) => [state.id, state]))
  const topOf = new Map(
    chart.root.states.flatMap((top) => withNested(top).map(({ id }): [string, string] => [id, top.id])),
  )

  function waysOf(from: readonly ChartState[]): Way[] {
    const ways = new Map<string, { events: Set<string>; main: boolean }>()
    for (const state of from) {
      for (const transition of state.transitions) {
        for (const target of transition.targets) {
          const to = topOf.get(target)
          if (to === undefined || to === topOf.get(state.id)) continue
          const way = ways.get(to) ?? { events: new Set(), main: false }
          way.main ||= isMain(look, transition)
          for (const event of eventsOf(state, transition)) way.events.add(event)
          ways.set(to, way)
        }
      }
    }
    return [...ways].map(([to, { events, main }]) => ({ to, main, events: inBrief([...events]) }))
  }

  /** What makes a machine take a transition. One without an event follows on those that led to its state. */
  function eventsOf(
    state: ChartState,
    transition: ChartTransition,
    seen: ReadonlySet<string> = new Set(),
  ): string[] {
    const outcome = outcomeOf(state, transition)
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

  return {
    tops: chart.root.states.map((state) => ({ state, ways: waysOf(withNested(state)) })),
    anywhere: waysOf([chart.root]),
  }
}

const done = / is done$/
const fails = / fails$/

/** How an actor ended; null for events of other kinds. */
function outcomeOf({ invokes }: ChartState, { event, on }: ChartTransition): string | null {
  if (!/^on(Done|Error)\b/.test(on)) return null
  const src = invokes.find(({ id }) => event.endsWith(`.actor.${id}`))?.src ?? 'it'
  return on.startsWith('onDone') ? `${src} is done` : `${src} fails`
}

/** More than two actors of which any will do need no names. */
function inBrief(events: readonly string[]): string[] {
  const many = (kind: RegExp): boolean => events.filter((event) => kind.test(event)).length > 2
  const [manyDone, manyFail] = [many(done), many(fails)]
  const others = events.filter((event) => !(manyDone && done.test(event)) && !(manyFail && fails.test(event)))
  return [
    ...others,
    ...(manyDone ? ['an actor is done'] : []),
    ...(manyFail ? ['an actor fails for good'] : []),
  ]
}
