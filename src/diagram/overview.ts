import {
  type Chart,
  type ChartState,
  type ChartTransition,
  expectChart,
  flattenStates,
  unknownStateError,
} from './chart.js'
import { agentLook, isMainTransition, type Look } from './look.js'

/** The states of a machine or of a compound state, and the transitions between them. */
export interface Overview {
  states: readonly OverviewState[]
  /**
   * The states outside a compound state that its transitions lead to: its siblings, and the siblings of its ancestors.
   */
  outside: readonly ChartState[]
  /** Transitions declared by the machine or compound state itself, which apply in every nested state. */
  anywhere: readonly OverviewTransition[]
}

/** A state and its outgoing transitions, merged by target. */
export interface OverviewState {
  state: ChartState
  transitions: readonly OverviewTransition[]
}

export interface OverviewTransition {
  /** The path of the target, or the path of the source if the events do not leave it. */
  to: string
  events: readonly string[]
  /** Whether the transition is part of the look's main path. */
  main: boolean
  causes: readonly (readonly string[])[]
}

/**
 * Summarizes the transitions between top-level states, or between the states inside `of` and out of it. Inside
 * `of`, events that do not leave a state are included.
 *
 * @throws {DiagramError} `unknown_state`
 * @example for (const { to, events } of toOverview(toChart(machine)).anywhere) console.log(to, events.join(', '))
 */
export function toOverview(chart: Chart, look: Look = agentLook, of?: string): Overview {
  expectChart('toOverview', chart, 'look', look)
  const states = flattenStates(chart.root)
  const byId = new Map(states.map((state) => [state.id, state]))
  const shown = of === undefined ? chart.root : byId.get(of)
  if (!shown || shown.states.length === 0) throw unknownStateError(of ?? chart.id, chart)
  // A nested state counts as its nearest listed ancestor.
  const around = states.filter(({ id }) => of !== undefined && (id === of || of.startsWith(`${id}.`)))
  const listed = [chart.root, ...around.filter((state) => state !== chart.root)].flatMap(
    (state) => state.states,
  )
  const topOf = new Map(
    listed.flatMap((top) => flattenStates(top).map(({ id }): [string, string] => [id, top.id])),
  )

  function waysOf(from: readonly ChartState[]): OverviewTransition[] {
    const ways = new Map<string, { causes: Causes; main: boolean }>()
    for (const state of from) {
      for (const transition of state.transitions) {
        const { targets } = transition
        for (const target of targets.length === 0 ? [state.id] : targets) {
          const to = topOf.get(target)
          const stays = of !== undefined && to === state.id && target === to
          if (to === undefined || (to === topOf.get(state.id) && !stays)) continue
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

  /** The events that cause a transition. For an eventless transition, the events that led to its source. */
  function eventsOf(
    state: ChartState,
    transition: ChartTransition,
    seen: ReadonlySet<string> = new Set(),
  ): string[] {
    const outcome = formatOutcome(state, transition)
    if (transition.on !== '' && outcome === null) return [transition.on === '*' ? 'any event' : transition.on]
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

  function entered(target: string, above: readonly string[] = []): string[] {
    const initial = above.includes(target) ? [] : (byId.get(target)?.initial ?? [])
    return [target, ...initial.flatMap((id) => entered(id, [...above, target]))]
  }

  const tops = shown.states.map((state) => ({ state, transitions: waysOf(flattenStates(state)) }))
  const anywhere = waysOf([shown])
  const reached = new Set(
    [...anywhere, ...tops.flatMap(({ transitions }) => transitions)].map(({ to }) => to),
  )
  const outside = listed.filter(
    (state) => reached.has(state.id) && state !== shown && !shown.states.includes(state),
  )
  return { states: tops, outside, anywhere }
}

const done = / is done$/
const fails = / fails$/
const anyDone = 'an actor finishes'
const anyFails = 'a failure without a retry'

function formatOutcome({ invokes }: ChartState, { event, on }: ChartTransition): string | null {
  if (!/^on(Done|Error)\b/.test(on)) return null
  if (event.endsWith('.*')) return on.startsWith('onDone') ? anyDone : anyFails
  const src = invokes.find(({ id }) => event.endsWith(`.actor.${id}`))?.src ?? 'it'
  return on.startsWith('onDone') ? `${src} is done` : `${src} fails`
}

type Causes = Map<string, string[]>

function addCause(causes: Causes, event: string, ids: readonly string[]): void {
  const known = causes.get(event) ?? []
  causes.set(event, [...known, ...ids.filter((id) => !known.includes(id))])
}

/** Merges more than two interchangeable actor outcomes into one generic entry. */
function mergeActorCauses(causes: Causes): Causes {
  const brief: Causes = new Map(causes)
  for (const [kind, word] of [[done, anyDone] as const, [fails, anyFails] as const]) {
    const many = [...causes].filter(([event]) => kind.test(event))
    for (const [event, ids] of many.length > 2 ? many : []) {
      brief.delete(event)
      addCause(brief, word, ids)
    }
  }
  return brief
}
