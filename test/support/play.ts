import { jest } from '@jest/globals'
import { SimulatedClock } from 'xstate'
import { addUsage, noUsage } from '../../machines/agent/usage.js'
import type { Message } from '../../machines/agent/messages.js'
import {
  type Agent,
  type AgentContext,
  type AgentEvent,
  type AgentOptions,
  createAgent,
  openaiChat,
  openaiResponses,
  type Run,
  type RunOptions,
  type RunInput,
  type RunResult,
  type SessionStore,
} from '../../src/index.js'
import {
  type RecordedRequest,
  type Rehearsal,
  startRehearsal,
  type Turn,
  type TurnFunction,
  type WireMessage,
} from '../../src/rehearsal/index.js'
import { findUnlawful } from './find-unlawful.js'
import { findHistoryProblem } from './history.js'

/** No scenario waits for real time. A scenario that takes this long hangs, even on a busy machine. */
jest.setTimeout(60_000)

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

const stages: Stage[] = []

afterEach(async () => {
  await Promise.all(stages.splice(0).map((stage) => stage.close()))
})

/** An agent's options, and the API of its model. */
export type StageOptions = Partial<AgentOptions> & { api?: 'chat' | 'responses' }

/** An agent with a simulated model over real HTTP. Ends with the test. */
export async function stage(
  turns: readonly (Turn | TurnFunction)[],
  options: StageOptions = {},
  onExhausted: 'error' | 'repeatLast' | 'loop' = 'error',
): Promise<Stage> {
  const opened = new Stage(await startRehearsal({ scenario: { turns, onExhausted }, strict: true }), options)
  stages.push(opened)
  return opened
}

/** One complete run of such an agent. */
export async function played(
  turns: readonly (Turn | TurnFunction)[],
  options: StageOptions = {},
): Promise<Play & { result: RunResult; stage: Stage }> {
  const opened = await stage(turns, options)
  const play = opened.run()
  const result = await play.end(turns.length)
  return Object.assign(play, { result, stage: opened })
}

export class Stage {
  readonly rehearsal: Rehearsal
  readonly clock = new SimulatedClock()
  readonly agent: Agent
  readonly plays: Play[] = []
  readonly #store: SessionStore | undefined

  constructor(rehearsal: Rehearsal, { api = 'chat', ...options }: StageOptions) {
    this.rehearsal = rehearsal
    this.#store = options.store
    const speak = api === 'chat' ? openaiChat : openaiResponses
    const model = speak({ model: 'gpt-test', baseURL: rehearsal.url, apiKey: 'none' })
    this.agent = createAgent({ model, clock: this.clock, ...options })
  }

  run(input: RunInput = 'Go.', options: RunOptions = {}): Play {
    const play = new Play(this, this.agent.run(input, options))
    this.plays.push(play)
    return play
  }

  get requests(): readonly RecordedRequest[] {
    return this.rehearsal.requests
  }

  /** The messages of one request. Negative numbers count from the last. */
  wire(index: number): readonly WireMessage[] {
    return this.requests.at(index)?.body.messages ?? []
  }

  /** Waits until this many requests have arrived. */
  arrival(count = 1): Promise<void> {
    return until(() => this.requests.length >= count)
  }

  async close(): Promise<void> {
    for (const { run } of this.plays) run.cancel()
    await this.rehearsal.close()
    // Every scenario's log must be one that the loop can write.
    if (this.#store) expect(await findUnlawful(this.#store)).toEqual([])
  }
}

export class Play {
  readonly run: Run
  readonly events: AgentEvent[] = []
  readonly #stage: Stage
  readonly #waiting = new Set<() => void>()

  constructor(stage: Stage, run: Run) {
    this.#stage = stage
    this.run = run
    run.events$.subscribe({
      next: (event) => {
        this.events.push(event)
        for (const look of this.#waiting) look()
      },
      error: () => undefined,
    })
  }

  /** The events of one kind. */
  readonly of = <Type extends AgentEvent['type']>(type: Type): EventOf<Type>[] =>
    this.events.filter((event): event is EventOf<Type> => event.type === type)

  /** Waits for an event, unless it has happened. */
  event<Type extends AgentEvent['type']>(
    type: Type,
    matches: (event: EventOf<Type>) => boolean = () => true,
  ): Promise<EventOf<Type>> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.of(type).find(matches)
        if (found === undefined) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
  }

  /** Makes the clock skip every wait between attempts. */
  skipBackOff(): this {
    this.run.events$.subscribe((event) => {
      if (event.type === 'retry') queueMicrotask(() => this.#stage.clock.increment(event.delayMs))
    })
    return this
  }

  /** The run's state at its next wait. Final states are not accepted. */
  async rest(): Promise<RunResult> {
    const result = await this.run.result
    expect(result.resumable).toBe(true)
    expect(this.of('run_ended')).toEqual([])
    expect(findHistoryProblem(result.messages, openCalls(this.run))).toBeNull()
    return result
  }

  /**
   * The run's end after `calls` model requests on this stage (and `unsent` attempts that no server received).
   * Also checks the rules of every run.
   */
  async end(calls: number, unsent = 0): Promise<RunResult> {
    const result = await this.run.result
    const { requests, plays } = this.#stage
    expect(requests.map(({ refused }) => refused).filter(Boolean)).toEqual([])
    expect(requests).toHaveLength(calls)
    expect(plays.flatMap((play) => play.#attempts())).toHaveLength(calls + unsent)
    expect(findHistoryProblem(result.messages)).toBeNull()
    for (const { body } of requests) expect(findHistoryProblem(body.messages.map(asMessage))).toBeNull()
    expect(this.events.map(({ seq }) => seq)).toEqual(this.events.map((_, i) => i + 1))
    expect(this.of('usage').reduce((sum, { step }) => addUsage(sum, step), noUsage)).toEqual(result.usage)
    expect(this.of('run_ended')).toHaveLength(1)
    expect(this.events.at(-1)).toMatchObject({
      type: 'run_ended',
      state: result.state,
      reason: result.reason,
    })
    const isError = result.state !== 'COMPLETED' && result.state !== 'CANCELLED'
    expect(this.of('error')).toHaveLength(isError ? 1 : 0)
    expect(result.error === undefined).toBe(!isError)
    expect(result.resumable).toBe(false)
    return result
  }

  /** Each attempt has one closing chunk, and a reset precedes the output of a later attempt. */
  #attempts(): string[] {
    const attempts = new Map<string, EventOf<'stream_chunk'>[]>()
    for (const chunk of this.of('stream_chunk')) {
      const key = `${chunk.stepId} ${chunk.attempt}`
      attempts.set(key, [...(attempts.get(key) ?? []), chunk])
    }
    for (const chunks of attempts.values()) {
      expect(chunks.map(({ finished }) => finished)).toEqual(chunks.map((_, i) => i === chunks.length - 1))
      expect(chunks[0]?.reset ?? false).toBe((chunks[0]?.attempt ?? 1) > 1)
    }
    return [...attempts.keys()]
  }
}

/** Another process with the same model and a separate agent. */
export function again({ rehearsal, clock }: Stage, options: Partial<AgentOptions> = {}): Agent {
  const model = openaiChat({ model: 'gpt-test', baseURL: rehearsal.url, apiKey: 'none' })
  return createAgent({ model, clock, ...options })
}

/** Calls that wait for a decision, and approved calls that wait for other calls. */
function openCalls(run: Run): string[] {
  const { context } = run.snapshot() as { context: AgentContext }
  if (context.state !== 'WAITING_FOR_INPUT') return []
  return context.calls.filter(({ result }) => result === undefined).map(({ id }) => id)
}

/** A request message in transcript form, for the same check. */
function asMessage(message: WireMessage, index: number): Message {
  return { ...message, id: `${index}`, createdAt: 0 } as unknown as Message
}

/** A message's text, regardless of its role. */
export function textOf(message: { content?: unknown } | undefined): string {
  const content = message?.content ?? ''
  return typeof content === 'string' ? content : JSON.stringify(content)
}

/**
 * Polls for an expected event and fails if it never comes. The limit counts this process's CPU time, so that
 * a busy machine does not cause an early failure.
 */
export async function until(condition: () => boolean): Promise<void> {
  const begun = process.cpuUsage()
  for (let turns = 1; !condition(); turns += 1) {
    if (turns % 1_000 === 0) {
      const { user, system } = process.cpuUsage(begun)
      if (user + system > 5_000_000) throw new Error(`It never came true: ${String(condition)}`)
    }
    await tick()
  }
}

/** Runs all ready work. */
export function tick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/** A promise that the test opens. */
export function latch(): { opened: Promise<void>; open(): void } {
  const controller = new AbortController()
  const opened = new Promise<void>((resolve) => {
    controller.signal.addEventListener('abort', () => resolve())
  })
  return { opened, open: () => controller.abort() }
}
