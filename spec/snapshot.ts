import { Broken, type Rule } from './rules.js'
import { type Call, type Run, type Setup, type Usage, amounts, hasEnded, rests } from './run.js'

interface Message {
  role: string
  id: string
  internal?: boolean
  data?: { screened?: boolean }
  tool_calls?: { id: string }[]
  tool_call_id?: string
}
interface StoredCall {
  id: string
  name: string
  needs: string
  result?: { status: string }
  hosted?: boolean
  started?: boolean
  unchecked?: boolean
  unscreened?: boolean
  unloaded?: boolean
  questions?: Call['questions']
}

/** The state of a snapshot, as far as the rules read it. */
export interface StoredState {
  status: string
  value: unknown
  context: Omit<Run, 'setup' | 'calls' | 'steering' | 'held' | 'kind'> & {
    runId: string
    tools: Setup['tools']
    features: Setup['features']
    config: Setup['config']
    usage: { run: Usage; session: Usage }
    messages: Message[]
    batchAt: number
    batchNumber: number
    retrieved: unknown
    steering: string[]
    response: string | null
    held: { outputProblem?: string | null } | null
    outputProblem: string | null
    lastBatchFailed: boolean
    verdict: { onHalt: string } | null
    calls: StoredCall[]
  }
}

/** The run that a snapshot has. */
export function readRun({ value, context }: StoredState, now: number, marks: boolean): Run {
  const { runId, tools, config, usage, messages, verdict, reason, ...rest } = context
  const features: Setup['features'] = { ...context.features, marks }
  let place: unknown = value
  while (typeof place === 'object' && place !== null) place = Object.values(place)[0]
  const stop =
    verdict?.onHalt ??
    (place !== 'MAX_STEPS' && (reason === 'max_steps' || reason === 'max_tool_calls') ? reason : null)
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  const unheard = messages
    .slice(spoken + 1)
    .filter(({ role, internal, data }) => role === 'user' && !internal && data?.screened !== true)
  return {
    ...rest,
    callCounts: rest.callCounts ?? null,
    // A log of an earlier version knows of none.
    loaded: (rest.loaded as readonly string[] | undefined) ?? [],
    setup: { runId, now, input: [], tools, features, config },
    place: String(place),
    reason,
    stop,
    ...usage,
    batch: context.batchNumber,
    kind: context.response,
    recalled: context.retrieved !== null,
    steering: context.steering.length,
    uncleared: features['inputShields'] ? unheard.length : 0,
    held: context.held !== null,
    problem: context.held?.outputProblem ?? context.outputProblem,
    batchFailed: context.lastBatchFailed,
    calls: context.calls.map(readCall),
  }
}

function readCall({
  id,
  name,
  needs,
  result,
  hosted,
  started,
  unchecked,
  unscreened,
  unloaded,
  questions,
}: StoredCall): Call {
  const seen = {
    done: result !== undefined,
    failed: result !== undefined && result.status !== 'ok' && !unloaded,
    perhaps: false,
  }
  const marks = { hosted: hosted === true, started: started === true, unchecked: unchecked === true }
  return {
    id,
    name,
    needs,
    ...seen,
    ...marks,
    unloaded: unloaded === true,
    unscreened: unscreened === true,
    questions: questions ?? null,
  }
}

const counters = [
  'steps',
  'attempt',
  'rateLimits',
  'recoveries',
  'reprompts',
  'emptyRetries',
  'outputRepairs',
  'callCounts',
] as const
const states = [
  'numbered',
  'batch',
  'kind',
  'stop',
  'deadline',
  'timeLeft',
  'pausing',
  'batchFailed',
  'loaded',
] as const
const waits = ['steering', 'uncleared', 'held', 'problem', 'backOffUntil', 'recalled'] as const

/** Throws where a snapshot is not of the run that its log has led to. */
export function checkSnapshot(run: Run, seen: Run, { status, context }: StoredState): void {
  const compare = (rule: Rule, what: string, is: unknown, due: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(due))
      throw new Broken(
        rule,
        `Its ${what} is ${JSON.stringify(is)}, and the log leads to ${JSON.stringify(due)}.`,
      )
  }
  compare('facts', 'run', seen.setup.runId, run.setup.runId)
  for (const key of ['config', 'tools', 'features'] as const)
    compare('facts', key, sortKeys(seen.setup[key]), sortKeys(run.setup[key]))
  compare('place', 'place', seen.place, run.place)
  compare('place', 'status', status, hasEnded(run) ? 'done' : 'active')
  if (run.reason !== undefined && (run.reason !== null || run.stop === null))
    compare('place', 'reason', seen.reason, run.reason)
  for (const total of ['run', 'session'] as const)
    compare('totals', `usage of the ${total}`, cut(seen[total]), cut(run[total]))
  for (const key of counters) compare('counters', key, seen[key], run[key])
  for (const key of states) compare('counters', key, seen[key], run[key])
  if (!hasEnded(run)) for (const key of waits) compare('counters', key, seen[key], run[key])
  compare(
    'calls',
    'calls',
    seen.calls.map(sketch),
    run.calls.map((call, i) => sketch(settled(call, seen.calls[i]))),
  )
  checkTranscript(context, rests.includes(seen.place))
}

/** Two objects are equal whatever the order of their keys. */
const sortKeys = (value: unknown): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
        Object.entries(value)
          .map(([key, inner]) => [key, sortKeys(inner)] as const)
          .sort(([one], [other]) => (one < other ? -1 : 1)),
      )

/** Sums of prices carry rounding errors. */
const cut = (usage: Usage): unknown[] => [...amounts.map((key) => usage[key]), usage.cost?.toPrecision(9)]
const sketch = ({ id, needs, started, done, unscreened, unchecked }: Call): unknown => ({
  id,
  done,
  unscreened,
  ...(!done && { needs, started, unchecked }),
})
/** Whether a guard has refused a call is known now. */
const settled = (call: Call, seen: Call | undefined): Call =>
  call.perhaps && seen?.done ? { ...call, done: true } : call

/** While a batch is under way, its results are in the transcript where the run rests; before, they may not be yet. */
function checkTranscript(
  { messages, calls, batchAt, numbered }: StoredState['context'],
  isResting: boolean,
): void {
  let last = 0
  for (const [at, { id, role, tool_calls: asked = [] }] of messages.entries()) {
    const number = Number(/^m(\d+)$/.exec(id)?.[1] ?? last + 1)
    if (number <= last || number > numbered)
      throw new Broken('transcript', `Message ${id} follows m${last}, of ${numbered} that were numbered.`)
    last = number
    if (role !== 'assistant') continue
    const after = messages.slice(at + 1)
    const results = after
      .slice(0, after.findIndex((one) => one.role !== 'tool') >>> 0)
      .map((one) => one.tool_call_id)
    const isOpen = calls.length > 0 && at === batchAt
    const isDue = (id: string): boolean =>
      !isOpen || (isResting ? calls.some((call) => call.id === id && call.result) : results.includes(id))
    const due = asked.map((call) => call.id).filter(isDue)
    if (results.join() !== due.join())
      throw new Broken(
        'transcript',
        `The calls of ${id} are ${due.join()}, and its results ${results.join()}.`,
      )
  }
}
