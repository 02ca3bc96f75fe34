import * as fc from 'fast-check'
import { type CheckName, checkNames } from './checks.js'
import { type DeedName, deedNames, type Manner, manners } from './deeds.js'
import { type FaultName, faultNames } from './faults/index.js'
import { type StoreName, storeNames } from './stores.js'
import { type ToolName, toolNames } from './tools.js'

/** The time of an action: after this many events, or at a moment without activity. */
export interface Moment {
  at: 'event' | 'still'
  count: number
  deed: DeedName
}

/** One short run: the actions of the provider, tools, shields, store and people, with their times. */
export interface Plan {
  seed: number
  overHttp: boolean
  api: 'chat' | 'responses'
  /** The provider has hosted tools that need approval, over the Responses API. */
  hosted?: true
  stream: boolean
  faults: FaultName[]
  tools: ToolName[]
  needsApproval: CheckName | null
  shields: Partial<Record<'input' | 'toolInput' | 'toolOutput' | 'output', CheckName>>
  guard: CheckName | null
  memory: CheckName | null
  store: StoreName
  subAgent: boolean
  structured: boolean
  /** All tools are loaded before they are called. Default: none are. */
  deferred?: 'append' | 'dispatch' | undefined
  /** The model can hand the conversation to another agent with the same tools. */
  handsOver?: true
  /** Requests go through a limiter that allows one in two seconds. */
  limited?: true
  interactive: boolean
  window: 'sliding_window' | 'compact' | 'summarize' | null
  maxSteps: number
  timeoutMs: number
  conclude: boolean
  acceptsMissingEnd: boolean
  moments: Moment[]
  manner: Manner
}

/** Most parts work most of the time. Otherwise no run would get far. */
const seldom = <Value>(value: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value })
const check = fc.constantFrom(...checkNames)
const fault = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.constantFrom<FaultName>('calls one tool', 'calls several tools', 'calls with one id again'),
  },
  { weight: 2, arbitrary: fc.constantFrom(...faultNames) },
)
const moment: fc.Arbitrary<Moment> = fc.record({
  at: fc.constantFrom('event', 'still'),
  count: fc.integer({ min: 1, max: 25 }),
  deed: fc.constantFrom(...deedNames),
})

export function anyPlan(shareOverHttp: number): fc.Arbitrary<Plan> {
  return fc.record({
    seed: fc.integer(),
    overHttp: fc.integer({ min: 0, max: 99 }).map((drawn) => drawn < shareOverHttp),
    api: fc.constantFrom('chat', 'chat', 'responses'),
    stream: fc.boolean(),
    faults: fc.array(fault, { minLength: 1, maxLength: 6 }),
    tools: fc.array(fc.constantFrom(...toolNames), { minLength: 1, maxLength: 4 }),
    needsApproval: seldom(check),
    shields: fc
      .record({
        input: seldom(check),
        toolInput: seldom(check),
        toolOutput: seldom(check),
        output: seldom(check),
      })
      .map((input) => Object.fromEntries(Object.entries(input).filter(([, name]) => name !== null))),
    guard: seldom(check),
    memory: seldom(check),
    store: fc.oneof(
      { weight: 1, arbitrary: fc.constant('none' as const) },
      { weight: 2, arbitrary: fc.constantFrom(...storeNames) },
    ),
    subAgent: fc.boolean(),
    structured: seldom(fc.constant(true)).map(Boolean),
    interactive: seldom(fc.constant(true)).map(Boolean),
    window: seldom(fc.constantFrom('sliding_window', 'compact', 'summarize')),
    maxSteps: fc.integer({ min: 1, max: 12 }),
    timeoutMs: fc.constantFrom(0, 0, 45_000, 2_000_000),
    conclude: fc.boolean(),
    acceptsMissingEnd: fc.boolean(),
    moments: fc.array(moment, { maxLength: 4 }),
    manner: fc.constantFrom(...manners),
    // Last, so that the other draws of a seed do not change.
    deferred: fc.constantFrom(undefined, undefined, undefined, 'append' as const, 'dispatch' as const),
  })
}
