import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { Agent, RunOptions } from '../../core/agent/agent-options.js'
import { systemClock, wait, type Clock, readElapsed } from '../../core/base/clock.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import { leaseMs } from '../../core/sessions/log/heartbeat.js'
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
import { getInternals, rebindAgent, WrappedTools } from '../rebind-agent.js'
import type { AgentFacts } from './agent-facts.js'
import { createScriptedModel, type Script } from './scripted-model.js'

/** A call that a stand-in has executed. */
export interface Execution {
  tool: string
  input: unknown
  /** Of the call: the same when it is executed again. */
  key: string
}

/** What a stand-in does in place of the tool. */
export type Behavior = (execution: Execution, signal: AbortSignal) => unknown

export interface SceneGiven {
  make: (model: ModelProvider) => AnyAgent
  facts: AgentFacts
  seed: number
  input: string
  context: unknown
}

/** The faults of one process, each certified at the end of its check. */
export interface SceneFaults {
  model?: FaultPlan<ModelFault>
  tool?: FaultPlan<ToolFault>
  store?: FaultPlan<StoreFault>
}

/** `session`: another one than that of the scene. */
export type SayOptions = Pick<RunOptions, 'signal' | 'limits'> & { session?: string }

/** The session of every scene. */
export const sessionId = 'checked'

/** One check's own place: a store, a time, and the processes that run the agent there. */
export class AgentScene {
  readonly facts: AgentFacts
  readonly input: string
  readonly context: unknown
  readonly seed: number
  readonly requests: ModelRequest[] = []
  readonly executions: Execution[] = []
  readonly time = new SceneTime()
  readonly store: SessionStore
  /** What the stand-ins do. */
  behave: Behavior = ({ tool }) => `The result of ${tool}.`
  readonly #given: SceneGiven
  readonly #processes: AgentProcess[] = []

  constructor(given: SceneGiven) {
    const { facts, seed, input, context } = given
    this.#given = given
    this.facts = facts
    this.input = input
    this.context = context
    this.seed = seed
    this.store = memoryStore({ now: () => this.time.now() })
  }

  /** Another place, for a check that needs several. */
  another(): AgentScene {
    return new AgentScene(this.#given)
  }

  /** A process with an agent of its own, on the store of the scene. */
  open(script: Script, faults: SceneFaults = {}, store: SessionStore = this.store): AgentProcess {
    const process = new AgentProcess(this, { make: this.#given.make, script, faults, store })
    this.#processes.push(process)
    return process
  }

  /** What a strict provider, the reference model and the plans of faults say at the end. */
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

interface ProcessGiven {
  make: SceneGiven['make']
  script: Script
  faults: SceneFaults
  store: SessionStore
}

/** One process that runs the agent: with its own model, tools and timers. */
export class AgentProcess {
  readonly agent: Agent
  readonly chaos: Chaos<string>[] = []
  readonly clock: LeapingClock
  readonly #scene: AgentScene
  readonly #storeChaos: Chaos<StoreFault> | undefined
  readonly #modelChaos: Chaos<ModelFault> | undefined
  /** The last request has failed, or hangs: the run waits for time to pass. */
  #isModelStill = false
  #hungCalls = 0
  #isStopped = false

  constructor(scene: AgentScene, { make, script, faults, store }: ProcessGiven) {
    this.#scene = scene
    this.clock = new LeapingClock(scene.time)
    const scripted = createScriptedModel(script, scene.seed, scene.facts)
    const troubled = faults.model ? this.#keep(chaosModel(scripted, faults.model)) : undefined
    this.#modelChaos = troubled
    const model = this.#observe(troubled ?? scripted)
    const { parts } = getInternals(make(model))
    const tools = new StandIns(parts.tools, (tool) => this.#createStandIn(tool, faults.tool))
    // A tool is made when it is first looked up; a fault that nothing looks up has to be missed.
    if (faults.tool && scene.facts.tool) tools.get(scene.facts.tool.name)
    const kept = faults.store ? this.#keep(chaosStore(store, faults.store)) : undefined
    this.#storeChaos = kept
    // Nothing of the agent's reaches the outside: no budget that others share, no telemetry.
    const changes: Partial<AgentParts> = {
      tools,
      clock: this.clock,
      budgets: undefined,
      telemetry: undefined,
    }
    this.agent = rebindAgent(parts, kept ?? store, changes)
  }

  /** Runs the agent until it rests. */
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

  /** The result of a run; null: its process has died. */
  async restOrDeath(run: Run): Promise<RunResult | null> {
    const isDead = (): boolean => (this.#storeChaos?.landed.length ?? 0) > 0
    await this.#until(run.result, isDead)
    // What has been written is told in the same moment.
    await nextTask(5)
    return isDead() ? null : run.result
  }

  /** Waits for work, and lets time leap where nothing but time can bring it on. */
  async settle<Value>(work: Promise<Value>): Promise<Value> {
    await this.#until(work)
    return work
  }

  /** Waits until a planned fault has landed. */
  async untilFault(): Promise<void> {
    // oxlint-disable-next-line no-await-in-loop -- until it has
    while (this.chaos.every(({ landed }) => landed.length === 0)) await nextTask()
  }

  /** It stops, and its lease runs out. */
  die(): void {
    this.stop()
    this.#scene.time.aheadMs += leaseMs * 2
  }

  stop(): void {
    this.#isStopped = true
    this.clock.stop()
  }

  /** Waits until the work has ended, well or badly, or there is no use in waiting for it. */
  async #until(work: Promise<unknown>, isInVain = (): boolean => false): Promise<void> {
    let isOver = false
    const end = (): void => {
      isOver = true
    }
    work.then(end, end)
    const isSo = (): boolean => isOver || isInVain()
    while (!isSo()) {
      // oxlint-disable-next-line no-await-in-loop -- until it is so
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

/** The agent's tools, none of which is executed. None hands the conversation to another agent, whose model would be asked. */
class StandIns extends WrappedTools {
  readonly #create: (tool: Tool) => Tool

  constructor(tools: AgentParts['tools'], create: (tool: Tool) => Tool) {
    super(tools)
    this.#create = create
  }

  override get team(): undefined {
    return undefined
  }

  protected override wrap(tool: Tool): Tool {
    const { handoff: _handoff, ...standIn } = this.#create(tool)
    return standIn
  }

  protected override trim(traits: ToolTraits): ToolTraits {
    const { handoff: _handoff, ...rest } = super.trim(traits)
    return rest
  }
}

/** Until everything has happened that is ready, so many times. */
export async function nextTask(times = 1): Promise<void> {
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  for (let i = 0; i < times; i++) await wait(systemClock, 0)
}

/** A call that waits until its signal aborts. */
export const hang: Behavior = (_execution, signal) => untilAborted(signal)

/** The texts of the user and of tools in a request. */
export function textsOf(messages: readonly Message[], role: 'user' | 'tool'): string[] {
  return messages
    .filter((message) => message.role === role)
    .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)))
}

/**
 * The time of a scene: the same for all its processes and their store. It passes steadily and in whole milliseconds, so that no run
 * begins before the end of the one before it.
 */
export class SceneTime {
  /** How far it is ahead of the platform's. */
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

/** The time of one process. It passes as the platform's does, and leaps to the next timer where nothing else can happen. */
export class LeapingClock implements Clock {
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

  /** Moves time on to the next timer, which then fires. */
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

  /** The process is dead: nothing fires any more. */
  stop(): void {
    this.#isStopped = true
    for (const id of this.#timers.keys()) this.clearTimeout(id)
  }

  #arm(id: number, timer: Timer): void {
    const left = Math.max(0, timer.due - this.now())
    timer.handle = systemClock.setTimeout(() => {
      // Timers of a busy platform fire early: they count from the beginning of the task that has set them.
      if (this.now() < timer.due) return this.#arm(id, timer)
      this.#timers.delete(id)
      timer.fire()
    }, left)
  }
}
