import type { InspectionEvent } from 'xstate'
import {
  type Agent,
  defineAgents,
  runSession,
  type SessionAnswer,
  type RunSessionOptions,
  type SessionResult,
  createSessionRunner,
  type RunInput,
  type RunResult,
  type SessionMessage,
} from '../../src/index.js'
import type { DeedName, Manner } from '../chaos/deeds.js'
import { timed } from '../chaos/play.js'
import { chance, type World } from '../chaos/world.js'
import type { Cell } from './cell.js'
import { Caller } from './called.js'
import { Page } from './paged.js'
import { dueIn, type Standing, tellFrom } from './elsewhere.js'

/** The run is cancelled after `mostRests` waits. Each wait may need `mostJumps` time jumps. */
const mostRests = 12
const mostJumps = 800

/** The maximum retry wait in milliseconds when waits are deferred. */
const maxRetryWaitMs = 10_000

export interface Drives {
  world: World
  input: RunInput
  /** Creates the agent as a separate process would. */
  process: () => Agent
  broken: string[]
  /** Called at each wait except the end. */
  atRest: () => Promise<void>
  /** Called when it is cancelled. */
  cancelled: () => void
}

/** People's actions without a handle. */
const deedMessages: Partial<Record<DeedName, SessionMessage>> = {
  steers: { type: 'steer', text: 'Mind the gap.' },
  pauses: { type: 'pause' },
  cancels: { type: 'cancel', why: 'Enough.' },
}

/** Drives a cell's run to its end like an engine, with only the session id. */
export class Driving {
  readonly #cell: Cell
  readonly #drives: Drives
  readonly #draw: () => number
  readonly #caller: Caller | Page | undefined
  /** Ends the driving process. */
  #stop: () => void = () => undefined
  #telling: Promise<void>[] = []
  #events = 0
  #still = 0
  /** How often a drive was stopped on the way. */
  stopped = 0

  constructor(cell: Cell, drives: Drives) {
    this.#cell = cell
    this.#drives = drives
    this.#draw = chance(cell.plan.seed ^ 0xd21e)
    const message = drives.input as string
    if (cell.caller === 'an MCP client') this.#caller = new Caller(message, drives.broken)
    if (cell.caller === 'a page') this.#caller = new Page(cell, message, drives.broken)
  }

  /** Receives all machine activity. */
  readonly inspect = ({ type }: InspectionEvent): void => {
    if (type !== '@xstate.event') return
    this.#events += 1
    this.#perform('event', this.#events)
  }

  async toEnd(): Promise<RunResult> {
    const { world, broken } = this.#drives
    let options: Partial<RunSessionOptions> = {}
    for (let rests = 0; ; ) {
      const rest = await this.#drive(options)
      broken.push(...ofRest(rest))
      options = {}
      if (rest.stopped) {
        this.stopped += 1
        if (rest.waitUntil !== undefined) await world.sleep(rest.waitMs ?? 0)
        continue
      }
      const { run, snapshot, seq } = await timed(world, this.#drives.process().replay('chaos'), true)
      // It has received a message since, while no process held it.
      if (seq !== rest.head) continue
      broken.push(...unlikeLog(rest, run as RunResult))
      if (run?.resumable !== true) {
        if (JSON.stringify(await this.#drive({})) !== JSON.stringify(rest))
          broken.push('a drive changes what has ended')
        return run as RunResult
      }
      await this.#drives.atRest()
      if (rests++ === mostRests) options = this.#says([{ type: 'cancel' }], rest)
      else if (this.#cell.isAnsweredElsewhere) await this.#answerElsewhere(snapshot as unknown as Standing)
      else options = this.#says(dueIn(snapshot as unknown as Standing, this.#cell.plan.manner, world), rest)
    }
  }

  /** An engine may repeat the answer or omit the wait that it belongs to. */
  #says(messages: readonly SessionMessage[], { head }: SessionResult): Partial<RunSessionOptions> {
    const answers = messages as readonly SessionAnswer[]
    if (answers.some(({ type }) => type === 'cancel')) this.#drives.cancelled()
    return { answers, ...(this.#draw() < 0.5 && { at: head }) }
  }

  async #answerElsewhere(pending: Standing): Promise<void> {
    const { world, process, broken } = this.#drives
    const manner: Manner = this.#cell.plan.manner
    for (const message of dueIn(pending, manner, world)) await tellFrom(process(), world, message, broken)
  }

  /** One drive in a separate process, with the engine's current data. */
  async #drive(more: Partial<RunSessionOptions>): Promise<SessionResult> {
    const { world, process, input, broken } = this.#drives
    const agent = process()
    const options = {
      session: 'chaos',
      input,
      turn: 1,
      ...(this.#draw() < 0.5 && { maxRetryWaitMs }),
      ...more,
    }
    let driving: Promise<SessionResult>
    if (this.#caller) {
      this.#stop = () => undefined
      driving = this.#caller.call(agent, options)
    } else if (this.#draw() < 0.5) {
      const stop = new AbortController()
      this.#stop = () => stop.abort()
      // The agent has its name in both cases, because only an agent of that name may continue the run.
      const named = defineAgents({ chaos: agent })
      const agents = this.#draw() < 0.5 ? agent : named
      driving = runSession(agents, { ...options, signal: stop.signal })
    } else {
      const own = createSessionRunner(defineAgents({ chaos: agent }), { drainMs: 0 })
      this.#stop = () => void own.drain()
      driving = own.runSession(options)
    }
    let isSettled = false
    const settle = (): void => void (isSettled = true)
    driving.then(settle, settle)
    for (let jumps = 0, moved = -1; ; ) {
      await world.quiet(true)
      if (this.#telling.length > 0) {
        await Promise.all(this.#telling.splice(0))
        continue
      }
      if (isSettled) break
      this.#still += 1
      if (this.#perform('still', this.#still)) continue
      if (jumps++ > 2 * mostJumps) throw new Error('The drive does not settle.')
      if (jumps === mostJumps) this.#tell(process(), { type: 'cancel', why: 'It takes too long.' })
      if (world.pass()) continue
      await world.quiet(true)
      if (!isSettled && moved === world.moves && jumps > 40) {
        broken.push('a drive hangs')
        this.#tell(process(), { type: 'cancel', why: 'It hangs.' })
      }
      moved = world.moves
    }
    this.#stop = () => undefined
    return driving
  }

  #perform(at: 'event' | 'still', now: number): boolean {
    const { plan, messages: fromElsewhere, driven } = this.#cell
    const isDue = (one: { at: 'event' | 'still'; count: number }): boolean =>
      one.at === at && one.count === now
    const deeds = plan.moments.filter(isDue)
    const stops = [...(driven?.stops ?? []), ...deeds.filter(({ deed }) => deed === 'aborts')].filter(isDue)
    if (stops.length > 0) this.#stop()
    const messages = [
      ...deeds.map(({ deed }) => deedMessages[deed]),
      ...fromElsewhere.filter(isDue).map(({ message }) => message),
    ]
    for (const message of messages) if (message) this.#tell(this.#drives.process(), message)
    return deeds.length + stops.length + messages.length > 0
  }

  #tell(agent: Agent, message: SessionMessage): void {
    const { world, broken, cancelled } = this.#drives
    const tell = async (): Promise<void> => {
      const status = await tellFrom(agent, world, message, broken)
      // The process that should receive it at once may be leaving. The next process receives it within a
      // second.
      const isHeard = status === 'applied' || (status === 'sent' && this.#cell.driven?.stops.length === 0)
      if (message.type === 'cancel' && isHeard) cancelled()
    }
    this.#telling.push(tell())
  }
}

/** Checks the data that an engine stores. */
function ofRest(rest: SessionResult): string[] {
  const text = JSON.stringify(rest)
  const size = new TextEncoder().encode(text).length
  return [
    ...(size > 1000 ? [`a rest has ${size} bytes`] : []),
    ...(JSON.stringify(JSON.parse(text)) === text ? [] : ['a rest is no JSON']),
  ]
}

/** Checks that the result summarizes the log. */
function unlikeLog(rest: SessionResult, run: RunResult): string[] {
  const output = rest.outputLength === undefined ? (rest.output ?? '') : run.output
  const pending = run.pending?.length ?? 0
  const [a, b] = [
    [rest.state, rest.reason, output, rest.outputLength ?? 0, rest.pendingCount ?? 0, rest.error?.code],
    [
      run.state,
      run.reason,
      run.output,
      rest.outputLength === undefined ? 0 : run.output.length,
      pending,
      run.error?.code,
    ],
  ].map((each) => JSON.stringify(each))
  return a === b ? [] : [`a drive rests at ${a}, and the log at ${b}`]
}

/** Each message without times and ids. */
export const inShort = ({ messages }: Pick<RunResult, 'messages'>): unknown =>
  messages.map((message) => [
    message.role,
    message.content,
    message.role === 'assistant' ? message.tool_calls?.map((call) => call.function) : null,
  ])
