import { Broken } from './rules.js'

export type Usage = Record<(typeof amounts)[number], number> & { cost: number | null }
export const amounts = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'cachedInputTokens',
  'reasoningTokens',
] as const

interface Traits {
  readOnly?: boolean
  idempotent?: boolean
  delegate?: boolean
  deferred?: boolean
  maxCalls?: number
}

/** What a run starts with, of which it keeps to the end all but its tools. */
export interface Setup {
  runId: string
  now: number
  input: unknown[]
  tools: Record<string, Traits>
  features: Record<string, boolean>
  config: {
    limits: Record<'timeoutMs' | 'tokenBudget' | 'outputTokens' | 'costLimit', number> & {
      maxSteps: number | null
      maxToolCalls?: number | null
      maxToolCallsPerResponse?: number | null
      onLimit: string
    }
    budget: { scope: string; countCached: boolean; onOvershoot: string; finishBatch: boolean }
    retry: Record<
      'maxAttempts' | 'rateLimitAttempts' | 'baseDelayMs' | 'maxDelayMs' | 'maxRetryAfterMs',
      number
    >
    completion: { maxOutputRepairs: number }
    toolCalls: { onInterrupted: string }
    guardrails: Record<string, unknown> & {
      maxTokensRecoveries: number
      emptyAnswer: { reprompts: number; retries: number } | null
    }
    interactive: boolean
  }
}

/** What the caps on tool calls have counted since the user spoke. */
export interface CallCounts {
  calls: number
  isOver: boolean
  byTool: Record<string, number>
}

export interface Question {
  callId: string
  needs: string
  messageId?: string
  answer?: unknown
}

/** A call of the last answer. */
export interface Call {
  id: string
  name: string
  /** Who has to act first: `nobody`, a person (`approval`), the `client`, or a sub-agent that rests (`child`). */
  needs: string
  hosted: boolean
  started: boolean
  done: boolean
  failed: boolean
  /** Shields are still to see its arguments, or its result. */
  unchecked: boolean
  unscreened: boolean
  /** Its tool was not loaded: it is a question for its schema, that no guard and no cap counts. */
  unloaded: boolean
  /** A guard may have refused it: logs do not hold the verdicts of guards. */
  perhaps: boolean
  questions: Question[] | null
}

/** A run, as far as its log tells. Where a guard decides unseen, a log leaves several runs possible. */
export interface Run {
  setup: Setup
  /** Where it stands: the name of a state. Names in capitals are of the ends, and of the pause. */
  place: string
  /** Why it rests or ended; undefined: a guard knows. */
  reason: string | null | undefined
  /** What follows its last words; null: it is not being stopped. */
  stop: string | null
  pausing: boolean
  steps: number
  attempt: number
  rateLimits: number
  recoveries: number
  reprompts: number
  emptyRetries: number
  outputRepairs: number
  callCounts: CallCounts | null
  backOffUntil: number
  deadline: number | null
  timeLeft: number | null
  run: Usage
  session: Usage
  /** Messages that the session has numbered; the number of the last answer. */
  numbered: number
  batch: number
  /** Steering that waits; user messages that shields are still to see. */
  steering: number
  uncleared: number
  recalled: boolean
  kind: string | null
  problem: string | null
  held: boolean
  batchFailed: boolean
  calls: Call[]
  /** Deferred tools that the session has loaded, in this order. */
  loaded: readonly string[]
}

export const nothing: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  cost: 0,
}
export const ends = [
  'COMPLETED',
  'CANCELLED',
  'TIMED_OUT',
  'MAX_STEPS',
  'BUDGET_EXCEEDED',
  'BLOCKED',
  'ERROR',
]
export const rests = ['approval', 'toolOutput', 'message', 'PAUSED']
export const hasEnded = ({ place }: Run): boolean => ends.includes(place)

const turn = {
  steps: 0,
  attempt: 1,
  rateLimits: 0,
  recoveries: 0,
  reprompts: 0,
  emptyRetries: 0,
  outputRepairs: 0,
  callCounts: null as CallCounts | null,
}

/** A user speaks: everything that counts by turns starts anew. */
export function hear(run: Run, messages: number): Run {
  const heard = {
    ...run,
    ...turn,
    numbered: run.numbered + messages,
    recalled: false,
    kind: null,
    problem: null,
  }
  const uncleared = run.setup.features['inputShields'] ? run.uncleared + messages : 0
  return {
    ...heard,
    uncleared,
    place: 'starting',
    reason: null,
    stop: null,
    pausing: false,
    batchFailed: false,
  }
}

export function begin(setup: Setup, session: Usage, numbered: number, loaded: readonly string[]): Run {
  const { timeoutMs } = setup.config.limits
  const time = { backOffUntil: 0, deadline: timeoutMs > 0 ? setup.now + timeoutMs : null, timeLeft: null }
  const empty = {
    batch: 0,
    steering: 0,
    uncleared: 0,
    held: false,
    calls: [] as Call[],
    run: nothing,
    session,
    loaded,
  }
  const run = { setup, ...turn, ...time, ...empty, numbered, recalled: false, kind: null, problem: null }
  return hear(
    { ...run, place: '', reason: null, stop: null, pausing: false, batchFailed: false },
    setup.input.length,
  )
}

/** Adds what was spent. */
export function spend(run: Run, usage: Usage | null | undefined): Run {
  if (!usage) return run
  if (amounts.some((key) => !(usage[key] >= 0)) || (usage.cost ?? 0) < 0)
    throw new Broken('usage', `It has used ${JSON.stringify(usage)}.`)
  return { ...run, run: add(run.run, usage), session: add(run.session, usage) }
}

function add(one: Usage, other: Usage): Usage {
  const sum = { cost: one.cost === null || other.cost === null ? null : one.cost + other.cost } as Usage
  for (const key of amounts) sum[key] = one[key] + other[key]
  return sum
}

/** The limit that is reached; null: there is budget left. */
export function findSpent({ setup: { config }, run, session }: Run): string | null {
  const { limits, budget } = config
  const { inputTokens, outputTokens, cachedInputTokens, cost } = budget.scope === 'session' ? session : run
  const free = budget.countCached ? 0 : Math.min(cachedInputTokens, inputTokens)
  if (limits.tokenBudget > 0 && inputTokens + outputTokens - free >= limits.tokenBudget) return 'token_budget'
  if (limits.outputTokens > 0 && outputTokens >= limits.outputTokens) return 'output_tokens'
  return limits.costLimit > 0 && (cost ?? 0) * (1 + 1e-9) >= limits.costLimit ? 'cost_limit' : null
}

/** The run with one of its calls changed. */
export function withCall(run: Run, id: string, patch: Partial<Call>): Run {
  return {
    ...run,
    calls: run.calls.map((call) => (call.id === id && !call.done ? { ...call, ...patch } : call)),
  }
}
