import { createAgent } from '../../src/core/agent/agent.js'
import type { Agent, AgentOptions } from '../../src/core/agent/agent-options.js'
import type { Clock } from '../../src/core/base/clock.js'
import { StatewrightError } from '../../src/core/base/errors.js'
import { defineAgents } from '../../src/core/drive/define-agents.js'
import type { RunSessionOptions } from '../../src/core/drive/drive-options.js'
import { runSession } from '../../src/core/drive/drive.js'
import type { SessionResult } from '../../src/core/drive/drive-rest.js'
import { createWaker } from '../../src/fleet/index.js'
import type { Faults } from './faults.js'
import { createModel } from './model.js'
import { connect } from './network.js'
import type { Plan } from './plan.js'
import type { SharedStore } from './shared-store.js'
import { createNap, createTools, type Effects } from './tools.js'
import { beginning, type Life, type World } from './world.js'

/** State shared by all processes. */
export interface Stage {
  world: World
  plan: Plan
  faults: Faults
  shared: SharedStore
  effects: Effects
  /** The sessions with pending work. */
  listDue: () => string[]
  /** The options of the next call for a session, except its id. */
  nextOptions: (session: string) => Partial<RunSessionOptions>
  onSettle: (session: string, rest: SessionResult, options: Partial<RunSessionOptions>) => void
}

/** Error codes that no fault explains. */
const neverSeen = ['corrupt_log', 'newer_log', 'unknown_state', 'internal']

/** A process that works on sessions, across restarts. Process 0 only sends messages and never dies. */
export class Host {
  readonly #stage: Stage
  readonly #number: number
  #lives = 0
  life!: Life
  agent!: Agent
  #skew: number
  #stop!: AbortController

  constructor(stage: Stage, number: number) {
    this.#stage = stage
    this.#number = number
    this.#skew = stage.plan.skews[number] ?? 0
    this.#begin()
  }

  /** It is dead, and its pending work has no further effect. */
  kill(ms: number): void {
    const { world } = this.#stage
    const { life } = this
    world.trouble(life.name, 'is killed')
    life.isAlive = false
    life.held.length = 0
    world.after(ms, null, () => this.#beginAnew(life))
  }

  /** SIGSTOP. */
  pause(ms: number): void {
    const { world } = this.#stage
    const { life } = this
    world.trouble(life.name, `stands still for ${ms} ms`)
    world.pause(life)
    world.after(ms, null, () => this.#wake(life))
  }

  /** SIGTERM: it ends after its current work has stopped. */
  stop(ms: number): void {
    const { world } = this.#stage
    const { life } = this
    if (!life.isAlive || this.#stop.signal.aborted) return
    world.trouble(life.name, 'is asked to stop')
    world.after(0, life, () => this.#stop.abort())
    world.after(ms + 30_000, null, () => {
      if (life.isAlive) this.kill(0)
    })
  }

  jump(ms: number): void {
    this.#stage.world.trouble(this.life.name, `has its clock set by ${ms} ms`)
    this.#skew += ms
  }

  /** Ends all faults, so that the process runs. */
  calm(): void {
    const { life } = this
    if (life.isPaused) this.#wake(life)
    if (!life.isAlive || this.#stop.signal.aborted) {
      life.isAlive = false
      this.#beginAnew(life)
    }
  }

  #wake(life: Life): void {
    if (!life.isAlive || !life.isPaused) return
    this.#stage.world.trouble(life.name, 'goes on')
    this.#stage.world.wake(life)
  }

  #beginAnew(before: Life): void {
    if (this.life === before) this.#begin()
  }

  #begin(): void {
    const { world } = this.#stage
    this.#lives += 1
    const who = this.#number === 0 ? 'desk' : `p${this.#number}`
    this.life = {
      name: this.#lives === 1 ? who : `${who}.${this.#lives}`,
      isAlive: true,
      isPaused: false,
      held: [],
      working: new Map(),
    }
    this.#stop = new AbortController()
    if (this.#lives > 1) world.trouble(this.life.name, 'begins')
    const clock = this.#createClock()
    this.agent = this.#createAgent(clock)
    if (this.#number > 0) this.#lookLater(this.life, this.#stop.signal)
    if (this.#number > 0 && this.#stage.plan.agent.naps) this.#startWaker(clock)
  }

  #createClock(): Clock {
    const { world } = this.#stage
    const { life } = this
    const bornAt = world.time
    return {
      now: () => beginning + world.time + this.#skew,
      elapsed: () => world.time - bornAt,
      setTimeout: (fn, ms) => world.after(ms, life, fn),
      clearTimeout: (due) => world.forget(due),
    }
  }

  #createAgent(clock: Clock): Agent {
    const { world, plan, faults, shared, effects } = this.#stage
    const { life } = this
    const { stream, maxSteps, timeoutMs, tokenBudget, onInterrupted, concurrency, research } = plan.agent
    const options: AgentOptions = {
      model: createModel(world, life, { plan, faults, shared }),
      clock,
      prices: null,
      tokenizer: { count: (text) => Math.ceil(text.length / 4) },
      store: connect(world, life, { shared, faults, plan: plan.store }),
      stream,
      limits: { maxSteps, timeoutMs, tokenBudget },
      budget: { scope: 'run' },
      toolCalls: { onInterrupted, concurrency },
      guardrails: { progress: null, emptyAnswer: null },
    }
    const { store: _store, ...ofChild } = options
    const nap = plan.agent.naps ? createNap(world, clock) : null
    const tools = createTools(world, life, { effects, faults, options: ofChild, research, nap })
    return createAgent({ ...options, tools }) as Agent
  }

  #lookLater(life: Life, signal: AbortSignal): void {
    const { world } = this.#stage
    const look = (): void => {
      if (signal.aborted) return
      for (const session of this.#stage.listDue())
        if (!life.working.has(session)) void this.#drive(session, life, signal)
      world.after(world.between(`looks ${this.#number}`, 2000, 10_000), life, look)
    }
    world.after(world.between(`looks ${this.#number}`, 0, 2000), life, look)
  }

  /** Wakes sessions like a production process. */
  #startWaker(clock: Clock): void {
    const { world } = this.#stage
    const { life } = this
    const { signal } = this.#stop
    const waker = createWaker(defineAgents({ own: this.agent }), {
      clock,
      pollMs: 5000,
      run: ({ session }) => this.#work(session, life, signal),
      onError: (error) => world.tell(life.name, `cannot wake: ${String(error).slice(0, 80)}`),
    })
    world.after(world.between(`looks ${this.#number}`, 0, 5000), life, () => {
      if (!signal.aborted) waker.start()
    })
    signal.addEventListener('abort', () => void waker.stop())
  }

  async #drive(session: string, life: Life, signal: AbortSignal): Promise<void> {
    // `#work` has reported the error.
    await this.#work(session, life, signal).catch(() => undefined)
  }

  async #work(session: string, life: Life, signal: AbortSignal): Promise<SessionResult> {
    const { world, plan, nextOptions, onSettle } = this.#stage
    const { maxRetryWaitMs } = plan.agent
    const own = {}
    if (!life.working.has(session)) life.working.set(session, own)
    const options = nextOptions(session)
    world.tell(
      life.name,
      `runSession(${session})${options.answers ? ' with answers' : ''}${options.turn ? `, turn ${options.turn}` : ''}`,
    )
    try {
      const rest = await runSession(this.agent, {
        session,
        input: `Go on with session ${session}.`,
        signal,
        ...(maxRetryWaitMs !== null && { maxRetryWaitMs }),
        ...options,
      })
      if (!life.isAlive) return rest
      world.tell(
        life.name,
        `${session} rests: ${rest.state} ${rest.reason ?? ''}${rest.stopped ? ', stopped' : ''} at ${rest.head}`,
      )
      onSettle(session, rest, options)
      return rest
    } catch (error) {
      if (!life.isAlive) throw error
      const code = error instanceof StatewrightError ? error.code : ''
      world.tell(life.name, `runSession(${session}) fails: ${code}`)
      if (code === '' || neverSeen.includes(code))
        world.break(
          `runSession(${session}) fails with ${error instanceof Error ? error.stack : String(error)}`,
        )
      throw error
    } finally {
      if (life.working.get(session) === own) life.working.delete(session)
    }
  }
}
