import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { InspectionEvent } from 'xstate'
import {
  type Agent,
  type AgentContext,
  type AgentEvent,
  type AgentOptions,
  type ForkEdit,
  type Grant,
  memoryStore,
  type Message,
  type Run,
  type RunInput,
  type RunResult,
  type SessionMessage,
  type SessionStore,
  StatewrightError,
  type ToolExecution,
} from '../../src/index.js'
import type { SharedBudget } from '../../src/fleet/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { faultsOf } from '../agui/page.js'
import { agentOf } from '../chaos/agent.js'
import { attend, deeds, type Hands } from '../chaos/deeds.js'
import { faults as failings, type Scene } from '../chaos/faults/index.js'
import { brokenBy, ofHistory } from '../chaos/oracles.js'
import { hostedCall } from '../chaos/in-responses.js'
import { allow, sayMore, timed, unlike } from '../chaos/play.js'
import type { Host, Provider } from '../chaos/provider.js'
import { answered, type Script } from '../chaos/script.js'
import { storeOf } from '../chaos/stores.js'
import { skewClock, World } from '../chaos/world.js'
import type { Plan } from '../chaos/plan.js'
import { foldRecords, xstateReducer } from '../../src/core/sessions/fold-session.js'
import { openRecord } from '../../src/core/sessions/log/log-record.js'
import { clearRecords } from '../../src/core/sessions/clear-records.js'
import { faults } from '../support/record-faults.js'
import {
  checkSessionLog,
  replaySession,
  createRecordedAgent,
  recordSession,
} from '../../src/testing/index.js'
import { Recorded, unmeasured } from '../support/spans.js'
import type { Cell, Turn } from './cell.js'
import { Driving, inShort } from './driven.js'
import { forkAsleep } from './asleep.js'
import { answerFrom, tellFrom } from './elsewhere.js'

/** The outcome of a cell. */
export interface Outcome {
  /** The violated rules. */
  broken: string[]
  /** State and reason. */
  ended: string
  /** The events on the way. */
  events: readonly AgentEvent[]
  /** The conversation, without times. */
  conversation: unknown
  /** How many drives ended before their wait. */
  stopped: number
}

/** The number of waits before the run is cancelled. */
const mostRests = 12
const mostJumps = 400

let cells = 0

/** Plays a cell's run to its end, checks the machine's rules, and sends one more message. */
export async function playCell(cell: Cell, host: Host): Promise<Outcome> {
  cells += 1
  const id = `cell-${cells}`
  const world = new World(cell.plan.seed)
  const broken: string[] = []
  const turns = [...cell.turns]
  const worked: string[] = []
  const begun: Begun[] = []
  const seen: Seen = { events: [], cancelled: null }
  const provider: Provider = {
    world,
    refused: [],
    next: (scene) => {
      if (isOver(seen)) broken.push('a request after the cancel')
      return scriptOf(world.calm ? undefined : turns.shift(), scene)
    },
  }
  host.add(id, provider)
  const { store, close } = open(cell, world)
  let run: Run | undefined
  const recorded = new Recorded()
  const parts = {
    world,
    provider,
    host,
    id,
    store,
    run: () => run,
    options: { ...cell.options, ...cell.createOptions(), telemetry: recorded.otel({ captureContent: true }) },
    onExecute: ({ idempotencyKey, callId, sessionId }: ToolExecution, tool: string) => {
      if (isOver(seen)) broken.push('a tool begins after the cancel')
      worked.push(idempotencyKey)
      if (sessionId.split(':')[0] === 'chaos') begun.push({ tool, callId })
    },
  }
  const agent = agentOf(cell.plan, parts)
  let driving: Driving | null = null
  const inspect = (event: InspectionEvent): void => driving?.inspect(event)
  let hosts = 0
  const elsewhere = (): Agent => {
    const skew = cell.skews[hosts++ % cell.skews.length] ?? 0
    const clock = skewClock(world, skew)
    return agentOf(
      cell.plan,
      cell.driven ? { ...parts, clock, options: { ...parts.options, inspect } } : parts,
    )
  }
  const abort = new AbortController()
  let ended = 'refused'
  let conversation: unknown
  try {
    const input = cell.hasHistory ? history : 'Go on.'
    const cancelled = (): void => void (seen.cancelled = seen.events.length)
    const atRest = async (): Promise<void> => {
      if (!cell.isForkedAsleep) return
      broken.push(...(await forkAsleep(agent, world, store)))
      broken.push(...(await stillReserved(parts.options.budgets)))
    }
    driving =
      cell.driven && new Driving(cell, { world, input, process: elsewhere, broken, atRest, cancelled })
    let result: RunResult
    if (driving) result = await driving.toEnd()
    else {
      run = agent.run(input, { session: 'chaos', signal: abort.signal })
      const hands: Hands = { world, agent, run, abort }
      const follow = (next: Run): void => void (run = hands.run = next)
      result = await lead(hands, cell, seen, broken, follow, elsewhere, atRest)
      broken.push(...(await sameAsLog(agent, hands, store)))
    }
    conversation = inShort(result)
    ended = `${result.state} ${result.reason}`
    // Events during session start precede the handle, and a driver has no handle.
    const isTold = driving !== null || cell.isAnsweredElsewhere || cell.messages.length > 0
    const events = isTold ? await timed(world, inLog(agent), true) : seen.events
    if (driving) seen.events = events
    broken.push(...rulesOf(result, events, cell))
    broken.push(...unmeasured(recorded, result))
    broken.push(...twice(worked).map((key) => `the call ${key} ran twice`))
    broken.push(...(await unapproved(begun, cell, store, events)), ...overspent(begun, events))
    seen.cancelled = null
    if (isPlayedAgain()) {
      broken.push(...(await playsAgain(agent, cell.plan, world)))
      broken.push(...(await ofRecords(store, world)))
    }
    if (cell.isForked) broken.push(...(await forked(agent, world, store)))
    world.calm = true
    if (!limited(cell)) broken.push(...(await sayMore(agent, cell.plan, world)))
    broken.push(...(await stillReserved(parts.options.budgets)))
  } catch (error) {
    broken.push(`threw ${String(error instanceof Error ? error.stack : error)}`)
  } finally {
    host.remove(id)
    close()
  }
  broken.push(...provider.refused.map((why) => `refused by the provider: ${why}`))
  return {
    broken: [...new Set(broken)],
    ended,
    events: seen.events,
    conversation,
    stopped: driving?.stopped ?? 0,
  }
}

/** An aborted request settles a moment later. */
async function stillReserved(budgets: AgentOptions['budgets']): Promise<string[]> {
  if (!Array.isArray(budgets)) return []
  for (let turn = 0; ; turn += 1) {
    const statuses = await Promise.all((budgets as SharedBudget[]).map(async (budget) => budget.status()))
    const held = statuses.filter(({ live, reserved }) => live > 0 || reserved.tokens > 0)
    if (held.length === 0) return []
    if (turn === 200) return held.map(({ live }) => `${live} requests that are over are still reserved`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

interface Seen {
  events: AgentEvent[]
  /** The number of events before the cancel. */
  cancelled: number | null
}

function isOver({ cancelled }: Seen): boolean {
  return cancelled !== null
}

/** A conversation from an app's database. */
const history: RunInput = [
  { role: 'user', content: 'What is here?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'tool_0', arguments: '{"n":0}' } }],
  },
  { role: 'tool', tool_call_id: 'call_1', content: 'nothing' },
  { role: 'assistant', content: 'Nothing.' },
  { role: 'user', content: 'Go on.' },
] as unknown as RunInput

function scriptOf(turn: Turn | undefined, scene: Scene): Script {
  if (turn === 'asks about a tool of its own') {
    const call = { id: `mcpr_${scene.world.below(1e9)}`, name: hostedCall, arguments: '{"url":"x"}' }
    return answered({ calls: [call] }, scene.stream)
  }
  if (typeof turn === 'string') return failings[turn](scene)
  const calls = turn?.calls.filter((name) => scene.tools.includes(name)) ?? []
  if (calls.length === 0) return failings['answers well'](scene)
  return answered(
    { calls: calls.map((name) => ({ id: `call_${scene.world.below(1e9)}`, name, arguments: '{"n":1}' })) },
    scene.stream,
  )
}

function open({ place }: Cell, world: World): { store: SessionStore; close: () => void } {
  if (place !== 'file') {
    const store = place === 'memory' ? memoryStore({ now: () => world.now() }) : storeOf(place, world)
    return { store: store as SessionStore, close: () => undefined }
  }
  const folder = mkdtempSync(path.join(tmpdir(), 'statewright-pairs-'))
  const store = fileStore({ dir: folder, now: () => world.now() })
  return {
    store,
    close: () => {
      store.close?.()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Drives a run to its end. At each wait a person answers, possibly in another process. */
async function lead(
  hands: Hands,
  { plan, goesOnElsewhere, messages, isAnsweredElsewhere }: Cell,
  seen: Seen,
  broken: string[],
  follow: (run: Run) => void,
  elsewhere: () => Agent,
  atRest: () => Promise<void>,
): Promise<RunResult> {
  const { world } = hands
  const perform = (at: 'event' | 'still', now: number): boolean => {
    const due = plan.moments.filter((moment) => moment.at === at && moment.count === now)
    for (const { deed } of due) {
      // A finished run has no work to cancel.
      if ((deed === 'cancels' || deed === 'aborts') && !isFinal(hands.run))
        seen.cancelled = seen.events.length
      void allow(deed, () => deeds[deed](hands), broken)
    }
    const dueMessages = messages.filter((one) => one.at === at && one.count === now)
    for (const { message } of dueMessages) telling = tell(message)
    return due.length + dueMessages.length > 0
  }
  const teller = elsewhere()
  let telling: Promise<void> | undefined
  let isEndedElsewhere = false
  const tell = async (message: SessionMessage): Promise<void> => {
    const status = await tellFrom(teller, world, message, broken)
    if (message.type !== 'cancel' || status === undefined) return
    seen.cancelled = seen.events.length
    isEndedElsewhere = status === 'applied'
  }
  /**
   * Another process finds the session in the store. It has a separate signal, because the old handle's signal
   * does not reach a new one.
   */
  const takeUp = async (): Promise<void> => {
    const next = await timed(world, elsewhere().resume('chaos', { signal: hands.abort.signal }), true)
    follow(next)
    settled = watch(next, world, seen, (count) => perform('event', count))
    await world.quiet(true)
  }
  let settled = watch(hands.run, world, seen, (count) => perform('event', count))
  let moved = 0
  for (let still = 1, rests = 0, jumps = 0; ; still++) {
    await world.quiet(plan.overHttp)
    if (settled.result) return settled.result
    if (settled.error !== undefined) throw settled.error
    if (perform('still', still)) continue
    if (telling !== undefined) {
      const ours = telling
      telling = undefined
      await ours
      continue
    }
    if (isEndedElsewhere) {
      isEndedElsewhere = false
      await takeUp()
      continue
    }
    const isResting = hands.run.state === 'WAITING_FOR_INPUT' || hands.run.state === 'PAUSED'
    if (!isResting) {
      if (jumps++ > 2 * mostJumps) throw new Error(`It does not end in ${hands.run.state}.`)
      if (jumps === mostJumps) {
        seen.cancelled = seen.events.length
        hands.run.cancel('It takes too long.')
        continue
      }
      if (world.pass()) continue
      // A first module load or a socket takes real time.
      await world.quiet(true)
      if (moved === world.moves && still > 40) throw new Error(`It hangs in ${hands.run.state}.`)
      moved = world.moves
      continue
    }
    await atRest()
    if (rests++ === mostRests) {
      seen.cancelled = seen.events.length
      hands.run.cancel('Enough.')
      continue
    }
    if (goesOnElsewhere) {
      // The process has ended. Another one finds the session in the store.
      await timed(world, hands.run.result, true)
      await takeUp()
    }
    if (isAnsweredElsewhere) {
      if (await answerFrom(teller, hands, plan.manner, broken)) await takeUp()
      continue
    }
    await allow('attend', () => attend(hands, plan.manner), broken)
  }
}

function isFinal(run: Run): boolean {
  return (run.snapshot() as { status?: string }).status !== 'active'
}

function watch(run: Run, world: World, seen: Seen, onEvent: (count: number) => void) {
  const settled: { result?: RunResult; error?: unknown } = {}
  const ids = new Set(seen.events.map(({ id }) => id))
  run.events$.subscribe({
    next: (event) => {
      world.moves += 1
      // Late subscribers receive the last state again.
      if (ids.has(event.id)) return
      ids.add(event.id)
      seen.events.push(event)
      onEvent(seen.events.length)
    },
    error: (error: unknown) => void (settled.error = error ?? new Error('refused')),
    complete: () => {
      run.result.then(
        (result) => void (settled.result = result),
        (error: unknown) => void (settled.error = error ?? new Error('refused')),
      )
    },
  })
  return settled
}

/** The rules of the machine, and the guarantees of the events. */
function rulesOf(result: RunResult, events: readonly AgentEvent[], { goesOnElsewhere }: Cell): string[] {
  const broken = brokenBy(result, events, { hasReliableStore: true, hasRival: false })
  const usage = events.filter((event) => event.type === 'usage').at(-1)
  if (usage && usage.session.totalTokens !== result.usage.totalTokens)
    broken.push(`usage: told ${usage.session.totalTokens} tokens, the result has ${result.usage.totalTokens}`)
  if (!usage && result.usage.totalTokens > 0) broken.push('usage was never told')
  broken.push(...faultsOf(events), ...deniedByNobody(events))
  // A resuming process repeats a question. A resumed call is reported only by its result.
  return goesOnElsewhere ? broken.filter((rule) => !rule.startsWith('events are not numbered')) : broken
}

/** The events of `agent.watch` for the session. */
async function inLog(agent: Agent): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const event of agent.watch('chaos')) events.push(event)
  return events
}

/** Replaying the log gives the run's state, with the tables and with XState's interpreter. */
async function sameAsLog(agent: Agent, { run, world }: Hands, store: SessionStore): Promise<string[]> {
  const { context } = run.snapshot() as { context: AgentContext }
  const { run: storedRun, messages, snapshot } = await timed(world, agent.replay('chaos'), true)
  const records = await timed(world, Promise.resolve(store.read('chaos', { from: 'snapshot' })), true)
  const byXState = foldRecords(records, 'chaos', xstateReducer)
  return [
    ...unlike(
      'the log',
      [storedRun?.state, storedRun?.reason, messages],
      [context.state, context.reason, context.messages],
    ),
    ...unlike('the log by XState', snapshot?.context, byXState.run?.context),
  ]
}

/** Whether this cell is also replayed. `npm test` replays a sample. */
const isPlayedAgain = () => Boolean(process.env['PAIRS'] ?? process.env['PAIRS_ONLY']) || cells % 4 === 0

/** The session replays without a model, on its agent and on an agent made from its recording. */
async function playsAgain(agent: Agent, plan: Plan, world: World): Promise<string[]> {
  const recording = await timed(world, recordSession(agent, 'chaos'), true)
  const { state } = await replaySession(createRecordedAgent(recording), recording)
  // A randomized approver now decides differently.
  if (plan.needsApproval !== null) return []
  const played = await replaySession(agent, recording)
  return state === played.state ? [] : [`it plays to ${played.state}, and by its recording alone to ${state}`]
}

/** Denied calls that no policy with an effect has denied. */
function deniedByNobody(events: readonly AgentEvent[]): string[] {
  const denied = new Set(
    events.flatMap((event) =>
      event.type === 'policy_decided' && event.decision === 'deny' && !event.shadow ? [event.callId] : [],
    ),
  )
  return events.flatMap((event) =>
    event.type === 'tool_result' && event.errorKind === 'policy_denied' && !denied.has(event.callId)
      ? [`nobody has denied ${event.callId}`]
      : [],
  )
}

interface Begun {
  tool: string
  callId: string
}

/** Calls that ran although too few people have approved them in the log. */
async function unapproved(
  begun: readonly Begun[],
  { votes }: Cell,
  store: SessionStore,
  events: readonly AgentEvent[],
): Promise<string[]> {
  if (votes.length === 0) return []
  const log = await Promise.resolve(store.read('chaos'))
  const approvals = log.flatMap(({ data }) => {
    const { event } = JSON.parse(data) as { event?: { type: string; callId?: string; by?: { id: string } } }
    return event?.type === 'APPROVE' ? [event] : []
  })
  return begun.flatMap(({ tool, callId }) => {
    const ofCall = approvals.filter((one) => one.callId?.split('/').at(-1) === callId)
    const { givers = [] } = grantOf(callId, events) ?? {}
    const people = new Set([...ofCall, ...givers].map(({ by }) => by?.id)).size
    const missed = votes.filter(({ of, atLeast }) => of === tool && people < atLeast)
    return missed.map(({ atLeast }) => `${tool} ran with ${people} approvals of ${atLeast}`)
  })
}

/** The grant that let a call start. */
function grantOf(callId: string, events: readonly AgentEvent[]): Grant | undefined {
  const decided = events.findLast((event) => event.type === 'approval_decided' && event.callId === callId)
  if (decided?.type !== 'approval_decided' || decided.outcome !== 'granted') return undefined
  return listGiven(events).find(({ id }) => id === decided.grant)
}

const listGiven = (events: readonly AgentEvent[]): Grant[] =>
  events.flatMap((event) => (event.type === 'grant_changed' && event.change === 'given' ? [event.grant] : []))

/** Grants that let more calls run than they allow. */
function overspent(begun: readonly Begun[], events: readonly AgentEvent[]): string[] {
  const calls = [...new Set(begun.map(({ callId }) => callId))]
  return listGiven(events).flatMap(({ id, uses = Infinity }) => {
    const count = calls.filter((callId) => grantOf(callId, events)?.id === id).length
    return count > uses ? [`a grant for ${uses} calls let ${count} run`] : []
  })
}

/** Each record matches the package's schema, in full and in displayed form. */
async function ofRecords(store: SessionStore, world: World): Promise<string[]> {
  const log = await timed(world, Promise.resolve(store.read('chaos')), true)
  const whole = log.map((record, i) => ({
    seq: record.seq,
    at: record.at,
    ...openRecord(record, i, 'chaos'),
  }))
  const violation = checkSessionLog(log, 'chaos')
  const unlawful = violation
    ? [`record ${violation.seq} breaks '${violation.rule}': ${violation.message}`]
    : []
  const unknown = [...whole, ...clearRecords(log, 'chaos').records].flatMap((record) =>
    faults(record)
      .slice(-1)
      .map((fault) => `record ${JSON.stringify(record)} is not what the schema says: ${fault}`),
  )
  return [...unlawful, ...unknown]
}

/** Replaces a message's text. The replacement may be rejected but must not break the session. */
function editOf(message: Message | undefined): ForkEdit | undefined {
  const [call] = (message?.role === 'assistant' && message.tool_calls) || []
  if (call) return { call: call.id, arguments: {} }
  if (message?.role === 'tool') return { call: message.tool_call_id, result: 'Otherwise.' }
  return message?.role === 'user' ? { message: message.id, content: 'Otherwise.' } : undefined
}

/**
 * A fork at any point, with or without an edit, is an independent session with a history that every provider
 * accepts. Its origin is unchanged.
 */
async function forked(agent: Agent, world: World, store: SessionStore): Promise<string[]> {
  const before = JSON.stringify(await timed(world, agent.replay('chaos'), true))
  const { head } = (await timed(world, Promise.resolve(store.get('chaos')), true)) as { head: number }
  const broken: string[] = []
  for (const at of [1 + world.below(head), head]) {
    try {
      const { messages } = await timed(world, agent.replay('chaos', { to: at }), true)
      const editsInstructions = world.below(4) === 0
      const edit = editsInstructions
        ? { instructions: 'Otherwise.' }
        : editOf(world.pick([undefined, ...messages]))
      const options = { ...(edit && { edit }), askFirst: world.below(2) === 0 }
      const id = await timed(world, agent.fork('chaos', at, options), true)
      const run = await timed(world, agent.resume(id), true)
      run.cancel('Enough.')
      broken.push(...ofHistory((await timed(world, run.result, true)).messages))
    } catch (error) {
      if (!(error instanceof StatewrightError)) broken.push(`fork at ${at} threw ${String(error)}`)
    }
  }
  const after = JSON.stringify(await timed(world, agent.replay('chaos'), true))
  return [...broken, ...(before === after ? [] : ['a fork has changed its origin'])]
}

/** Whether the session's usage or its shields also end every later message. */
function limited({ options, createOptions, plan }: Cell): boolean {
  const { tokenBudget, costLimit } = options.limits ?? {}
  const mayRefuse = createOptions().budgets !== undefined
  return (
    mayRefuse || Boolean(tokenBudget) || Boolean(costLimit) || Object.values(plan.shields).includes('blocks')
  )
}

function twice(keys: readonly string[]): string[] {
  return keys.filter((key, i) => keys.indexOf(key) !== i)
}
