import type { Message } from '../../../machines/agent/messages.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { Agent, RunOptions } from '../../core/agent/agent-options.js'
import { systemClock, wait, type Clock, readElapsed } from '../../core/base/clock.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import { leaseMs } from '../../core/sessions/log/lease.js'
import type { ModelProvider, ModelRequest } from '../../core/models/provider.js'
import type { Run } from '../../core/run/run.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import type { Tool, ToolExecution } from '../../core/tools/tool.js'
import { findHistoryProblem } from '../agent/invariants/transcript-rules.js'
import type { Chaos, FaultPlan } from '../chaos/chaos.js'
import {
  chaosModel,
  type ModelFault,
  untilAborted,
  chaosStore,
  type StoreFault,
  chaosTool,
  type ToolFault,
} from '../chaos/chaos-parts.js'
import { CheckFailure } from '../check-assertions.js'
import { checkSessionLog } from '../check-session-log.js'
import { getInternals, rebindAgent, wrapTools } from '../rebind-agent.js'
import type { AgentFacts } from './agent-facts.js'
import { createScriptedModel, type Script } from './scripted-model.js'

export interface Execution {
  tool: string
  input: unknown
  /** The call's idempotency key. It is the same for each execution. */
  key: string
}

export type Behavior = (execution: Execution, signal: AbortSignal) => unknown

export interface SceneOptions {
  make: (model: ModelProvider) => AnyAgent
  facts: AgentFacts
  seed: number
  input: string
  context: unknown
}

/** The faults planned for one process. Each is certified at the end of the check. */
export interface SceneFaults {
  model?: FaultPlan<ModelFault>
  tool?: FaultPlan<ToolFault>
  store?: FaultPlan<StoreFault>
}

export type SayOptions = Pick<RunOptions, 'signal' | 'limits'> & { session?: string }

export const sessionId = 'checked'

export class AgentScene {
  readonly facts: AgentFacts
  readonly input: string
  readonly context: unknown
  readonly seed: number
  readonly requests: ModelRequest[] = []
  readonly executions: Execution[] = []
  readonly time = new SceneTime()
  readonly store: SessionStore
  behave: Behavior = ({ tool }) => `The result of ${tool}.`
  readonly #options: SceneOptions
  readonly #processes: AgentProcess[] = []

  constructor(options: SceneOptions) {
    const { facts, seed, input, context } = options
    this.#options = options
    this.facts = facts
    this.input = input
    this.context = context
    this.seed = seed
    this.store = memoryStore({ now: () => this.time.now() })
  }

  another(): AgentScene {
    return new AgentScene(this.#options)
  }

  open(script: Script, faults: SceneFaults = {}, store: SessionStore = this.store): AgentProcess {
    const process = new AgentProcess(this, this.#options.make, script, faults, store)
    this.#processes.push(process)
    return process
  }

  play(script: Script, faults?: SceneFaults, options?: SayOptions): Promise<RunResult> {
    return this.open(script, faults).say(this.input, options)
  }

  get process(): AgentProcess {
    return this.#processes.at(-1) as AgentProcess
  }

  /** Judges requests as a strict provider, the log by the reference model, and that all faults occurred. */
  async judge(): Promise<void> {
    for (const [at, { messages }] of this.requests.entries()) {
      const problem = findHistoryProblem(messages)
      if (problem !== null)
        throw new CheckFailure(`a strict provider refuses request ${at + 1} (${problem.replace(/\.$/, '')})`)
    }
    const records = await this.store.read(sessionId)
    const violation = records.length > 0 ? checkSessionLog(records, sessionId) : null
    if (violation) throw new CheckFailure(`record ${violation.seq} of the log: ${violation.message}`)
    for (const { chaos } of this.#processes) for (const one of chaos) one.certify()
  }

  close(): void {
    for (const process of this.#processes) process.stop()
  }
}

export class AgentProcess {
  readonly agent: Agent
  readonly chaos: Chaos<string>[] = []
  readonly clock: LeapingClock
  readonly #scene: AgentScene
  readonly #storeChaos: Chaos<StoreFault> | undefined
  readonly #modelChaos: Chaos<ModelFault> | undefined
  /** Whether the last request failed or is hanging, so that only time can advance the run. */
  #isModelStill = false
  #hungCalls = 0
  #isStopped = false

  constructor(
    scene: AgentScene,
    make: SceneOptions['make'],
    script: Script,
    faults: SceneFaults,
    store: SessionStore,
  ) {
    this.#scene = scene
    this.clock = new LeapingClock(scene.time)
    const scripted = createScriptedModel(script, scene.seed, scene.facts)
    const troubled = faults.model ? this.#keep(chaosModel(scripted, faults.model)) : undefined
    this.#modelChaos = troubled
    const model = this.#observe(troubled ?? scripted)
    const { parts } = getInternals(make(model))
    // Handoffs are removed, because another agent's model would be called.
    const tools = wrapTools(parts.tools, {
      wrap: ({ handoff: _handoff, ...tool }) => this.#createStandIn(tool, faults.tool),
      trim: ({ handoff: _handoff, ...traits }) => traits,
      hasTeam: false,
    })
    // Tools are created on first lookup. The fault must be planned even if the agent never looks the tool up.
    if (faults.tool && scene.facts.tool) tools.get(scene.facts.tool.name)
    const chaos = faults.store ? this.#keep(chaosStore(store, faults.store)) : undefined
    this.#storeChaos = chaos
    // The agent must have no effect outside the check, so it has no shared budgets and no telemetry.
    const changes = { tools, clock: this.clock, budgets: undefined, telemetry: undefined }
    this.agent = rebindAgent(parts, chaos ?? store, changes)
  }

  say(text: string, options: SayOptions = {}): Promise<RunResult> {
    return this.rest(this.start(text, options))
  }

  start(text: string, options: SayOptions = {}): Run {
    return this.agent.run(text, { session: sessionId, ...options, context: this.#scene.context }) as Run
  }

  async resume(): Promise<Run> {
    return this.settle(this.agent.resume(sessionId, { context: this.#scene.context })) as Promise<Run>
  }

  rest(run: Run): Promise<RunResult> {
    return this.settle(run.result)
  }

  /** The result of a run, or null if its process died. */
  async restOrDeath(run: Run): Promise<RunResult | null> {
    const isDead = (): boolean => (this.#storeChaos?.landed.length ?? 0) > 0
    await this.#until(run.result, isDead)
    // Pending writes are reported in the same tick.
    await nextTask(5)
    return isDead() ? null : run.result
  }

  /** Waits for work. Advances time whenever only time can make progress. */
  async settle<Value>(work: Promise<Value>): Promise<Value> {
    await this.#until(work)
    return work
  }

  async untilFault(): Promise<void> {
    // oxlint-disable-next-line no-await-in-loop -- waits for the first fault
    while (this.chaos.every(({ landed }) => landed.length === 0)) await nextTask()
  }

  die(): void {
    this.stop()
    this.#scene.time.aheadMs += leaseMs * 2
  }

  stop(): void {
    this.#isStopped = true
    this.clock.stop()
  }

  async #until(work: Promise<unknown>, isInVain = (): boolean => false): Promise<void> {
    let isOver = false
    const end = (): void => {
      isOver = true
    }
    work.then(end, end)
    const isSo = (): boolean => isOver || isInVain()
    while (!isSo()) {
      // oxlint-disable-next-line no-await-in-loop -- waits until the work ends or is in vain
      await nextTask()
      if (this.#isStopped) throw new CheckFailure('the process was stopped')
      const stalls = this.#modelChaos?.landed.some(({ fault }) => fault === 'stalled') === true
      if (!isSo() && (this.#isModelStill || stalls || this.#hungCalls > 0)) this.clock.leap()
    }
  }

  #keep<Faulty extends Chaos<string>>(faulty: Faulty): Faulty {
    this.chaos.push(faulty)
    return faulty
  }

  #observe(model: ModelProvider): ModelProvider {
    return {
      ...model,
      request: async (request, options) => {
        this.#scene.requests.push(request)
        this.#isModelStill = false
        try {
          return await model.request(request, options)
        } catch (error) {
          this.#isModelStill = true
          throw error
        }
      },
    }
  }

  #createStandIn(tool: Tool, plan: FaultPlan<ToolFault> | undefined): Tool {
    const execute = async (input: unknown, { idempotencyKey, signal }: ToolExecution): Promise<unknown> => {
      this.#isModelStill = false
      const execution: Execution = { tool: tool.name, input, key: idempotencyKey }
      this.#scene.executions.push(execution)
      return this.#scene.behave(execution, signal)
    }
    const standIn: Tool = tool.client ? tool : { ...tool, execute }
    if (!plan || tool.name !== this.#scene.facts.tool?.name) return standIn
    const faulty = this.#keep(chaosTool(standIn, plan))
    return {
      ...faulty,
      execute: async (input: unknown, execution: ToolExecution) => {
        this.#hungCalls += 1
        try {
          return await faulty.execute?.(input, execution)
        } finally {
          this.#hungCalls -= 1
        }
      },
    }
  }
}

export async function nextTask(times = 1): Promise<void> {
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  for (let i = 0; i < times; i++) await wait(systemClock, 0)
}

export const hang: Behavior = (_execution, signal) => untilAborted(signal)

export function textsOf(messages: readonly Message[], role: 'user' | 'tool'): string[] {
  return messages
    .filter((message) => message.role === role)
    .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)))
}

/** Shared by the processes and the store. Whole milliseconds, so that no run starts before the previous one ends. */
class SceneTime {
  aheadMs = 0
  readonly #origin = systemClock.now() - readElapsed(systemClock)

  now(): number {
    return Math.floor(this.#origin + readElapsed(systemClock)) + this.aheadMs
  }
}

interface Timer {
  due: number
  fire: () => void
  handle: unknown
}

/** The clock of one process. It follows the system clock and can jump to the next timer. */
class LeapingClock implements Clock {
  readonly #time: SceneTime
  readonly #timers = new Map<number, Timer>()
  #lastId = 0
  #isStopped = false

  constructor(time: SceneTime) {
    this.#time = time
  }

  now(): number {
    return this.#time.now()
  }

  setTimeout(fire: () => void, ms: number): number {
    const id = ++this.#lastId
    if (this.#isStopped) return id
    const timer: Timer = { due: this.now() + ms, fire, handle: undefined }
    this.#timers.set(id, timer)
    this.#arm(id, timer)
    return id
  }

  clearTimeout(id: unknown): void {
    const timer = this.#timers.get(id as number)
    if (!timer) return
    systemClock.clearTimeout(timer.handle)
    this.#timers.delete(id as number)
  }

  leap(): void {
    const due = Math.min(...[...this.#timers.values()].map((timer) => timer.due))
    if (Number.isFinite(due)) this.pass(due - this.now())
  }

  pass(ms: number): void {
    // Dates are whole milliseconds.
    this.#time.aheadMs += Math.max(0, Math.ceil(ms))
    for (const [id, timer] of this.#timers) {
      systemClock.clearTimeout(timer.handle)
      this.#arm(id, timer)
    }
  }

  stop(): void {
    this.#isStopped = true
    for (const id of this.#timers.keys()) this.clearTimeout(id)
  }

  #arm(id: number, timer: Timer): void {
    const left = Math.max(0, timer.due - this.now())
    timer.handle = systemClock.setTimeout(() => {
      // Timers may fire early on a busy system, because they count from the start of the task that set them.
      if (this.now() < timer.due) return this.#arm(id, timer)
      this.#timers.delete(id)
      timer.fire()
    }, left)
  }
}
