import fc from 'fast-check'
import { initialTransition, transition, type AnyEventObject, type SnapshotFrom } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentInput } from '../../machines/agent/context.js'
import type { ModelOutput } from '../../machines/agent/model-response.js'
import { agentSpace, listAgentEvents } from '../../src/testing/index.js'
import type { LogEntry } from '../../src/testing/reference-model/judge-log.js'
import { sampled } from '../support/extent.js'
import { judgeWhole } from './judge-whole.js'

type Snapshot = SnapshotFrom<typeof agentMachine>

const plain = agentSpace({ only: ['with grants'] }).inputs['with grants'] as AgentInput
/** Everybody may approve, one person, two people, or people other than the requester. */
const approvers = fc.constantFrom(undefined, { ids: ['bob'] }, { count: 2 }, { notRequester: true as const })

const limits = fc.record(
  {
    when: fc.constantFrom({}, { n: 1 }, { n: [0, 2] }, { n: { min: 1 } }, { n: { max: 1 } }),
    until: fc.constantFrom(500, 2_000, 60_000),
    uses: fc.integer({ min: 1, max: 3 }),
  },
  { requiredKeys: [] },
)
const move = fc.record({
  /** Chooses an event, and a call or a grant for it. */
  event: fc.nat(),
  of: fc.nat(),
  ms: fc.constantFrom(0, 0, 1, 400, 3_000),
  /** The number in the arguments of each call. Number 3 gives invalid JSON. */
  calls: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 4 }),
  limits,
  by: fc.constantFrom(undefined, 'bob', 'cyd'),
})
type Move = typeof move extends fc.Arbitrary<infer Value> ? Value : never

/** The calls, grants and revocations of a person and a model, at any time. */
function listEvents(
  snapshot: Snapshot,
  { of, calls, limits: bounds, by, ms }: Move,
  now: number,
  id: string,
) {
  const { context } = snapshot
  const { grants = [] } = context
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[of % items.length]
  const callId = pick(context.calls)?.id ?? 'none'
  const sent = by === undefined ? {} : { by: { id: by } }
  const { until, ...others } = bounds
  const grant = { id, ...others, ...(until !== undefined && { until: now + until - ms }) }
  const approve = { type: 'APPROVE', callId, ...sent }
  const known = listAgentEvents(snapshot)
  const answer = known['model: two questions']
  return [
    ...Object.entries(known).flatMap(([name, event]) => (name === 'cancel' && of % 8 > 0 ? [] : [event])),
    ...(answer ? [withCalls(answer, calls, context.steps)] : []),
    approve,
    { ...approve, grant },
    { type: 'GRANT', tool: 'lend', grant: { ...grant, when: bounds.when ?? {} }, ...sent },
    { type: 'REVOKE', grant: pick(grants)?.id ?? 'none', ...sent },
    { type: 'REVOKE', callId, ...sent },
  ] as AnyEventObject[]
}

function withCalls(answer: AnyEventObject, numbers: readonly number[], step: number): AnyEventObject {
  const output = answer['output'] as ModelOutput
  const ids = numbers.map((_, i) => `r${step}-${i}`)
  const toolCalls = ids.map((id, i) => ({
    id,
    type: 'function' as const,
    function: { name: 'lend', arguments: numbers[i] === 3 ? '{"n' : `{"n":${numbers[i]}}` },
  }))
  const calls = ids.map((id) => ({ id, needs: 'approval' as const }))
  return { ...answer, output: { ...output, response: { ...output.response, toolCalls }, calls } }
}

/** The log of a run, with its state after each event, and whether a grant let a call start. */
function play(moves: readonly Move[], input: AgentInput): { log: LogEntry[]; isGranted: boolean } {
  const { messages, usage, guardrails, warnedOfBudget, fit = null, ...start } = input
  const log: LogEntry[] = []
  const write = (type: string, at: number, fields: object): void => {
    log.push({ ...fields, seq: log.length + 1, at, type })
  }
  let current = initialTransition(agentMachine, input)[0] as Snapshot
  let { now } = input
  let [isGranted, isReleased] = [false, false]
  write('opened', now, { version: 1, state: { messages, usage, guardrails, warnedOfBudget, fit } })
  write('start', now, { input: start })
  for (const [i, one] of moves.entries()) {
    if (current.status !== 'active') break
    const events = listEvents(current, one, now + one.ms, `g${i}`)
    const bare = events[one.event % events.length] as AnyEventObject
    const isLater = bare.type === 'xstate.done.actor.backOff'
    const time = Math.max(now + one.ms, isLater ? current.context.backOffUntil : 0)
    const event = { ...bare, now: time }
    // Another process continues.
    if (!current.can(event as never) || (isReleased && event.type !== 'RESUMED')) continue
    isReleased = event.type === 'RELEASED'
    now = time
    write('event', now, { event })
    current = transition(agentMachine, current, event as never)[0] as Snapshot
    isGranted ||= current.context.calls.some(({ grant }) => grant !== undefined)
    const { status, value, context } = current
    write('snapshot', now, { version: 1, runs: 1, state: { status, value, context } })
  }
  return { log, isGranted }
}

test('random histories with grants follow the rules', () => {
  let granted = 0
  fc.assert(
    fc.property(fc.array(move, { minLength: 5, maxLength: 40, size: 'max' }), approvers, (moves, terms) => {
      const restricted = terms && { approvers: [terms], requesters: [{ id: 'cyd' }] }
      const { log, isGranted } = play(moves, { ...plain, ...restricted })
      if (isGranted) granted += 1
      expect(judgeWhole(log)).toBeNull()
    }),
    { numRuns: sampled(800) },
  )
  expect(granted).toBeGreaterThan(10)
})
