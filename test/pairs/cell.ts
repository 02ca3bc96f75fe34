import type { AgentOptions, SessionMessage } from '../../src/index.js'
import type { Moment, Plan } from '../chaos/plan.js'
import type { FaultName } from '../chaos/faults/index.js'
import { chance } from '../chaos/world.js'
import { tellings } from './elsewhere.js'
import { type Feature, type FeatureName, features } from './features.js'

/** The kinds of store for a cell's session. */
export const places = ['memory', 'file', 'answers by promises'] as const

export type Place = (typeof places)[number]

/** The model's turn: one of the known answers, or a response with these calls. */
export type Turn = FaultName | { calls: readonly string[] } | 'asks about a tool of its own'

/** Two features in one run, with a schedule drawn by the seed. */
export interface Cell {
  features: readonly [FeatureName, FeatureName]
  place: Place
  plan: Plan
  options: Partial<AgentOptions>
  /** More of them, created for each play of the cell. */
  createOptions: () => Partial<AgentOptions>
  votes: readonly NonNullable<Feature['votes']>[]
  turns: Turn[]
  goesOnElsewhere: boolean
  /** Messages sent to the session from elsewhere, with their moments. */
  messages: { at: Moment['at']; count: number; message: SessionMessage }[]
  isAnsweredElsewhere: boolean
  isForked: boolean
  /** While it sleeps. Afterwards the forks are deleted. */
  isForkedAsleep: boolean
  /**
   * Null if its handle drives it. Otherwise `runSession` drives it, and `stops` are the moments at which its
   * process ends.
   */
  driven: { stops: readonly Pick<Moment, 'at' | 'count'>[] } | null
  /**
   * The client that starts it, repeats its requests at each wait, and answers: an MCP client or a chat page.
   */
  caller: 'an MCP client' | 'a page' | null
  /** Milliseconds by which its processes' clocks are ahead, in sequence. Without it, all clocks agree. */
  skews: readonly number[]
  hasHistory: boolean
}

/** All compatible pairs of features. */
export function pairsOf(names: readonly FeatureName[]): [FeatureName, FeatureName][] {
  return names
    .flatMap((a, i) => names.slice(i + 1).map((b): [FeatureName, FeatureName] => [a, b]))
    .filter(([a, b]) => !excludes(a, b) && !excludes(b, a))
}

function excludes(a: FeatureName, b: FeatureName): boolean {
  return (features[a] as Feature).never?.includes(b) === true
}

/** The run of a pair. The seed sets the order of events and the times of people's actions. */
export function cellOf(pair: readonly [FeatureName, FeatureName], place: Place, seed: number): Cell {
  const draw = chance(seed)
  const below = (limit: number): number => Math.floor(draw() * limit)
  const both: readonly Feature[] = pair.map((name) => features[name])
  const plans = both.map(({ plan }) => plan ?? {})
  const turns: Turn[] = both.flatMap(({ answers }) => answers ?? [])
  const calls = [...new Set(both.flatMap(({ calls: called }) => called ?? []))]
  if (plans.some(({ hosted }) => hosted)) turns.push('asks about a tool of its own')
  // In one response, or in consecutive responses.
  turns.push(...(below(3) > 0 ? [{ calls }] : calls.map((call) => ({ calls: [call] }))))
  // While it waits, the page sends an earlier approval again.
  if (both.some(({ fate }) => fate === 'is asked on a page')) turns.push({ calls: ['pay'] })
  const moments = both.flatMap(({ deed }): Moment[] =>
    deed === undefined ? [] : [{ at: below(2) === 0 ? 'event' : 'still', count: 1 + below(12), deed }],
  )
  const policy = both.flatMap(({ policies }) => policies ?? [])
  const limits = Object.assign({}, ...both.map(({ options }) => options?.limits)) as AgentOptions['limits']
  return {
    features: pair,
    place,
    plan: {
      ...quiet,
      stream: below(2) === 0,
      // A sub-agent with a custom tool also has the approval tool.
      tools: [both.find(({ tool }) => tool !== undefined)?.tool ?? 'works'],
      manner: both.find(({ manner }) => manner !== undefined)?.manner ?? 'approve',
      ...Object.assign({}, ...plans),
      seed,
      moments,
      shields: Object.assign({}, ...plans.map(({ shields }) => shields)) as Plan['shields'],
    },
    options: { ...both[0]?.options, ...both[1]?.options, policy, ...(limits && { limits }) },
    votes: both.flatMap(({ votes }) => votes ?? []),
    createOptions: () => ({ ...both[0]?.createOptions?.(), ...both[1]?.createOptions?.() }),
    turns: shuffled(
      turns.filter((turn) => typeof turn === 'string' || turn.calls.length > 0),
      below,
    ),
    goesOnElsewhere: both.some(({ fate }) => fate === 'goes on elsewhere'),
    messages: both.flatMap(({ message }) =>
      message === undefined || message === 'answers'
        ? []
        : [{ at: below(2) === 0 ? 'event' : 'still', count: 1 + below(12), message: tellings[message] }],
    ),
    isAnsweredElsewhere: both.some(({ message }) => message === 'answers'),
    isForked: both.some(({ fate }) => fate === 'is forked'),
    isForkedAsleep: both.some(({ fate }) => fate === 'is forked asleep'),
    driven: drivenBy(both, seed),
    caller: both.map(({ fate }) => (fate && callers[fate]) ?? null).find((one) => one !== null) ?? null,
    skews: both.flatMap(({ skews = [] }) => skews),
    hasHistory: both.some(({ history }) => history === true),
  }
}

const callers: Partial<Record<NonNullable<Feature['fate']>, NonNullable<Cell['caller']>>> = {
  'is called over MCP': 'an MCP client',
  'is asked on a page': 'a page',
}

/** From a separate random stream, so that the cell without `runSession` gives the same run. */
function drivenBy(both: readonly Feature[], seed: number): Cell['driven'] {
  const draw = chance(seed ^ 0x5eed)
  if (both.some(({ fate }) => fate === 'is driven' || (fate && callers[fate]))) return { stops: [] }
  if (!both.some(({ fate }) => fate === 'is driven, and stopped')) return null
  return {
    stops: Array.from({ length: 3 }, () => ({
      at: draw() < 0.5 ? 'event' : 'still',
      count: 1 + Math.floor(draw() * 12),
    })),
  }
}

/** A run without special features. */
const quiet: Plan = {
  seed: 0,
  overHttp: false,
  api: 'chat',
  stream: true,
  faults: [],
  tools: ['works'],
  needsApproval: null,
  shields: {},
  guard: null,
  memory: null,
  store: 'none',
  subAgent: false,
  structured: false,
  interactive: false,
  window: null,
  maxSteps: 12,
  timeoutMs: 0,
  conclude: false,
  acceptsMissingEnd: false,
  moments: [],
  manner: 'approve',
}

function shuffled<Item>(items: Item[], below: (limit: number) => number): Item[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = below(i + 1)
    ;[items[i], items[j]] = [items[j] as Item, items[i] as Item]
  }
  return items
}
