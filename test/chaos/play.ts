import type { Message } from '../../machines/agent/messages.js'
import {
  type Agent,
  type AgentContext,
  type AgentEvent,
  memoryJournal,
  type Run,
  type RunResult,
  StatewrightError,
} from '../../src/index.js'
import { foldRecords, xstateReducer } from '../../src/core/sessions/fold-session.js'
import { findUnlawful } from '../support/find-unlawful.js'
import { fold } from '../support/fold.js'
import { agentOf } from './agent.js'
import { attend, deeds, type Hands } from './deeds.js'
import { type FaultName, faults } from './faults/index.js'
import { brokenBy, ofHistory } from './oracles.js'
import type { Plan } from './plan.js'
import type { Host, Provider } from './provider.js'
import { storeOf } from './stores.js'
import { World } from './world.js'

/** The outcome of a run. */
export interface Report {
  /** The broken promises. */
  broken: string[]
  /** Its end: state and reason, or the refusal code. */
  ended: string
  faults: FaultName[]
}

/** The maximum number of time jumps. Then the run is cancelled. */
const patience = 300
/** The maximum milliseconds without an event while no known hang exists. */
const stuckAfter = 7_200_000
const mostRests = 12
/** The store's maximum milliseconds after a cancel. */
const endsWithin = 600_000

let runs = 0

/** Plays one plan to its end, then sends one more message to the same session. */
export async function play(plan: Plan, host: Host): Promise<Report> {
  runs += 1
  const id = `run-${runs}`
  const world = new World(plan.seed)
  const played: FaultName[] = []
  const coming = [...plan.faults]
  const provider: Provider = {
    world,
    refused: [],
    next: (scene) => {
      const name = world.calm ? 'answers well' : (coming.shift() ?? 'answers well')
      played.push(name)
      return faults[name](scene)
    },
  }
  host.add(id, provider)
  const store = storeOf(plan.store, world)
  let run: Run | undefined
  const agent = agentOf(plan, { world, provider, host, id, store, run: () => run })
  const journal = memoryJournal()
  const abort = new AbortController()
  const broken: string[] = []
  let ended = 'refused'
  try {
    run = agent.run(`Go \ud83d on.`, { session: 'chaos', signal: abort.signal, ...(!store && { journal }) })
    const watched = watch(run, world)
    const hands: Hands = { world, agent, run, abort }
    await lead(hands, plan, watched, broken)
    ended = watched.ended
    if (ended.includes('no typed error')) broken.push(ended)
    if (watched.result) {
      broken.push(
        ...brokenBy(watched.result, watched.events, {
          hasReliableStore: isReliable(plan),
          hasRival: hasRival(plan),
        }),
      )
      const { context } = run.snapshot() as { context: AgentContext }
      if (!store) broken.push(...unlike('the journal', fold(journal.entries).context, context))
      else if (isReliable(plan) && !hasRival(plan)) {
        const { run: stored, messages, snapshot } = await timed(world, agent.replay('chaos'))
        broken.push(
          ...unlike(
            'the log',
            [stored?.state, stored?.reason, messages],
            [context.state, context.reason, context.messages],
          ),
        )
        const records = await timed(world, Promise.resolve(store.read('chaos', { from: 'snapshot' })))
        const byXState = foldRecords(records, 'chaos', xstateReducer)
        broken.push(...unlike('the log by XState', snapshot?.context, byXState.run?.context))
      }
    }
    world.calm = true
    broken.push(...(await sayMore(agent, plan, world)))
    if (store) broken.push(...(await timed(world, findUnlawful(store), plan.overHttp)))
  } catch (error) {
    broken.push(`threw ${String(error instanceof Error ? error.stack : error)}`)
  } finally {
    world.end()
    await world.quiet(plan.overHttp)
    host.remove(id)
  }
  broken.push(...provider.refused.map((why) => `refused by the provider: ${why}`))
  return { broken, ended, faults: played }
}

interface Watched {
  events: AgentEvent[]
  isOver: boolean
  result: RunResult | undefined
  ended: string
  /** A reaction to an event. */
  onEvent: (count: number) => void
}

function watch(run: Run, world: World): Watched {
  const watched: Watched = {
    events: [],
    isOver: false,
    result: undefined,
    ended: 'open',
    onEvent: () => undefined,
  }
  const refuse = (error: unknown): void => {
    watched.isOver = true
    watched.ended = `refused: ${error instanceof StatewrightError ? error.code : `no typed error: ${String(error)}`}`
  }
  run.events$.subscribe({
    next: (event) => {
      world.moves += 1
      watched.events.push(event)
      watched.onEvent(watched.events.length)
    },
    error: refuse,
    complete: () => {
      run.result.then(
        (result) => Object.assign(watched, { isOver: true, result, ended: endOf(result) }),
        refuse,
      )
    },
  })
  return watched
}

function endOf({ state, reason }: RunResult): string {
  return `${state} ${reason}`
}

/** Drives a run to its end with all of people's actions on the way. Cancels it when it takes too long. */
async function lead(hands: Hands, plan: Plan, watched: Watched, broken: string[]): Promise<void> {
  const { world, run } = hands
  const perform = (at: 'event' | 'still', now: number): boolean => {
    const due = plan.moments.filter((moment) => moment.at === at && moment.count === now)
    for (const { deed } of due) void allow(deed, () => deeds[deed](hands), broken)
    return due.length > 0
  }
  watched.onEvent = (count) => perform('event', count)
  let rests = 0
  let jumps = 0
  let last = { events: 0, at: world.now() }
  for (let still = 1; ; still++) {
    await world.quiet(plan.overHttp)
    if (watched.isOver) return
    // An action must take effect before the next one.
    if (perform('still', still)) continue
    const isResting = run.state === 'WAITING_FOR_INPUT' || run.state === 'PAUSED'
    if (isResting && rests++ < mostRests) {
      await allow('attend', () => attend(hands, plan.manner), broken)
      continue
    }
    if (last.events !== watched.events.length) last = { events: watched.events.length, at: world.now() }
    if (rests > mostRests || jumps++ > patience) break
    const isMoving = world.pass() && (world.now() - last.at < stuckAfter || world.hanging > 0)
    if (isMoving || (await hasMoved(world))) continue
    if (world.hanging === 0 && !plan.overHttp) broken.push(`it hangs in ${run.state}`)
    break
  }
  run.cancel('It takes too long.')
  const since = world.now()
  for (let tries = 0; tries < 30 || (tries < 2_000 && world.now() - since < endsWithin); tries++) {
    await world.quiet(plan.overHttp)
    if (watched.isOver) return
    world.pass()
  }
  broken.push(`cancel() does not end it in ${run.state}`)
}

/** A first module load takes real time. */
async function hasMoved(world: World): Promise<boolean> {
  const { moves } = world
  await world.quiet(true)
  return moves !== world.moves
}

/** People's actions may be rejected with a typed error. No other failure is allowed. */
export async function allow(what: string, deed: () => unknown, broken: string[]): Promise<void> {
  try {
    await deed()
  } catch (error) {
    if (!(error instanceof StatewrightError) || error.code === '' || error.message === '')
      broken.push(`'${what}' threw ${String(error instanceof Error ? error.stack : error)}`)
  }
}

/** One more message to the same session after all faults have ended must be answered. */
export async function sayMore(agent: Agent, plan: Plan, world: World): Promise<string[]> {
  for (let attempt = 1; ; attempt++) {
    let failure: unknown
    try {
      const run = agent.run('And now?', { session: 'chaos', limits: { maxSteps: 5, timeoutMs: 0 } })
      const result = await timed(world, atEnd(run), plan.overHttp)
      const output = plan.structured ? JSON.stringify(result.object) : result.output
      const isWell =
        result.state === (plan.interactive ? 'CANCELLED' : 'COMPLETED') &&
        output === (plan.structured ? '{"done":true}' : 'Fine.')
      return [
        ...(isWell
          ? []
          : [
              `one more message ends ${result.state} ${result.reason} ${result.error?.message} ${result.output.slice(0, 40)}`,
            ]),
        ...ofHistory(result.messages as Message[]),
      ]
    } catch (error) {
      failure = error
    }
    const code = failure instanceof StatewrightError ? failure.code : ''
    if (attempt > 4) return [`one more message is refused: ${String(failure)}`]
    if (code === 'unfinished_run') await finish(agent, world)
    else if (code === 'session_busy') {
      await world.sleep(60_000)
      if (attempt > 2) for (const cancel of world.cancelOthers.splice(0)) cancel()
    } else
      return [`one more message is refused: ${String(failure instanceof Error ? failure.stack : failure)}`]
  }
}

/** A run whose end could not be written is resumed and ended. */
async function finish(agent: Agent, world: World): Promise<void> {
  const run = await timed(world, agent.resume('chaos'))
  run.cancel('Enough.')
  // A resumed run starts at the end of a real event loop turn.
  await timed(world, run.result, true)
}

/** Interactive runs wait for the next message forever. */
async function atEnd(run: Run): Promise<RunResult> {
  const rest = await run.result
  if (rest.state !== 'WAITING_FOR_INPUT') return rest
  run.cancel()
  return run.result
}

/** Settles as time passes. A promise that does not settle is a hang. */
export async function timed<Value>(world: World, work: Promise<Value>, isReal = false): Promise<Value> {
  const known = { isSettled: false }
  const settle = (): void => {
    known.isSettled = true
  }
  work.then(settle, settle)
  // A slow store takes a jump for each session of each sub-agent.
  for (let jumps = 0; jumps < 600; jumps++) {
    await world.quiet(isReal)
    if (known.isSettled) return work
    world.pass()
  }
  throw new Error('It never settles.')
}

/** Whether its log holds all events. */
function isReliable({ store }: Plan): boolean {
  return store === 'none' || store === 'memory' || store === 'answers by promises' || store === 'is slow'
}

/** Whether another run asks for its session. */
function hasRival({ moments }: Plan): boolean {
  return moments.some(({ deed }) => deed === 'runs a second time at once')
}

export function unlike(what: string, found: unknown, expected: unknown): string[] {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)]
  return a === b ? [] : [`${what} leads to ${a.slice(0, 300)} instead of ${b.slice(0, 300)}`]
}
