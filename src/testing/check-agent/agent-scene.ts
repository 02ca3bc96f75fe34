import { formatCount } from '../../core/format/format-words.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { RunOptions } from '../../core/agent/agent-options.js'
import { systemClock, wait, readElapsed } from '../../core/base/clock.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import { leaseMs } from '../../core/sessions/log/lease.js'
import type { ModelProvider, ModelRequest } from '../../core/models/provider.js'
import type { Run } from '../../core/run/run.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import type { Tool, ToolExecution } from '../../core/tools/tool.js'
import { findHistoryProblem } from '../agent/invariants/transcript-rules.js'
import {
  type Chaos,
  type FaultPlan,
  chaosModel,
  chaosStore,
  chaosTool,
  untilAborted,
  type ModelFault,
  type StoreFault,
  type ToolFault,
} from '../chaos/chaos.js'
import { CheckFailure, expectTrue } from '../check-assertions.js'
import { checkSessionLog } from '../check-session-log.js'
import { getInternals, rebindAgent, wrapTools } from '../rebind-agent.js'
import type { AgentFacts, SampledTool } from './agent-facts.js'
import { createScriptedModel, type Script, type Turn, turns } from './scripted-model.js'

interface Execution {
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
interface SceneFaults {
  model?: FaultPlan<ModelFault>
  tool?: FaultPlan<ToolFault>
  store?: FaultPlan<StoreFault>
}

export type SayOptions = Pick<RunOptions, 'signal' | 'limits'> & { session?: string }

export const sessionId = 'checked'

export const endOf = ({ state, reason }: RunResult): string => `${state} ${reason}`

export const describeEnd = (result: RunResult): string =>
  `${endOf(result)}${result.error ? `: ${result.error.message}` : ''}`

/** Why a check does not apply to the agent. */
export class NotAsked extends Error {}

export class AgentScene {
  readonly requests: ModelRequest[] = []
  readonly executions: Execution[] = []
  readonly time = new SceneTime()
  readonly store: SessionStore = memoryStore({ now: () => this.time.now() })
  behave: Behavior = ({ tool }) => `The result of ${tool}.`
  readonly #processes: AgentProcess[] = []

  constructor(readonly options: SceneOptions) {}

  get input(): string {
    return this.options.input
  }

  /** @throws NotAsked if there is none, like the getters below */
  get tool(): SampledTool {
    return this.#expectTool(this.options.facts.tool, 'runs without approval')
  }

  get variedTool(): SampledTool {
    if (!this.tool.varies) throw new NotAsked(`every input of ${this.tool.name} is the same`)
    return this.tool
  }

  get askingTool(): SampledTool {
    return this.#expectTool(this.options.facts.askingTool, 'needs approval')
  }

  #expectTool(tool: SampledTool | null, what: string): SampledTool {
    if (tool) return tool
    const { unsampled } = this.options.facts
    const hint = unsampled.length > 0 ? `; pass inputs for ${unsampled.join(', ')}` : ''
    throw new NotAsked(`the agent has no tool that ${what}${hint}`)
  }

  /** The results in the last request. */
  get lastResults(): string[] {
    return textsOf(this.requests.at(-1)?.messages, 'tool')
  }

  describeRun(result: RunResult): string {
    return `${formatCount(this.requests.length, 'request')}, ${endOf(result)}`
  }

  /** @throws CheckFailure for fewer or more requests than allowed */
  expectRequests(most: number, result: RunResult, least = 0): void {
    const { length } = this.requests
    const isWithin = length >= least && length <= most
    expectTrue(isWithin, `${formatCount(length, 'request')} (${describeEnd(result)})`)
  }

  /** @throws CheckFailure for fewer or more executed calls */
  expectExecutions(times: number, result: RunResult): void {
    const { length } = this.executions
    const calls = formatCount(length, 'call was', 'calls were')
    expectTrue(length === times, `${calls} executed, not ${times} (${describeEnd(result)})`)
  }

  open(script: Script, faults: SceneFaults = {}, store: SessionStore = this.store): AgentProcess {
    const process = openProcess(this, script, faults, store)
    this.#processes.push(process)
    return process
  }

  play(script: Script, faults?: SceneFaults, options?: SayOptions): Promise<RunResult> {
    return this.open(script, faults).say(this.input, options)
  }

  /** The model calls the tool once, then answers. */
  callOnce(faults?: SceneFaults, options?: SayOptions): Promise<RunResult> {
    return this.play(turns(callOf(this.tool)), faults, options)
  }

  /** Cancels the run while its call behaves like `then`. */
  cancelInCall(then: Behavior, controller = new AbortController()): Promise<RunResult> {
    this.behave = (execution, signal) => {
      controller.abort()
      return then(execution, signal)
    }
    return this.callOnce({}, { signal: controller.signal })
  }

  /** Says something more in the last process, and returns its first request. */
  async sayAgain(): Promise<ModelRequest> {
    const before = this.requests.length
    const again = await this.process.say('Again.')
    const request = this.requests[before]
    expectTrue(request !== undefined, `no further request: ${describeEnd(again)}`)
    return request
  }

  /** The last process. */
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

export type AgentProcess = ReturnType<typeof openProcess>

function openProcess(scene: AgentScene, script: Script, faults: SceneFaults, innerStore: SessionStore) {
  const { make, facts, seed, context } = scene.options
  const clock = createLeapingClock(scene.time)
  const chaos: Chaos<string>[] = []
  /** Whether the last request failed or is hanging, so that only time can advance the run. */
  let isModelStill = false
  let hungCalls = 0
  let isStopped = false

  function keep<Faulty extends Chaos<string>>(faulty: Faulty): Faulty {
    chaos.push(faulty)
    return faulty
  }

  const scripted = createScriptedModel(script, seed, facts)
  const modelChaos = faults.model && keep(chaosModel(scripted, faults.model))
  const model = modelChaos ?? scripted
  const { parts } = getInternals(
    make({
      ...model,
      request: async (request, options) => {
        scene.requests.push(request)
        isModelStill = false
        try {
          return await model.request(request, options)
        } catch (error) {
          isModelStill = true
          throw error
        }
      },
    }),
  )

  function createStandIn(tool: Tool): Tool {
    const execute = async (input: unknown, { idempotencyKey, signal }: ToolExecution): Promise<unknown> => {
      isModelStill = false
      const execution: Execution = { tool: tool.name, input, key: idempotencyKey }
      scene.executions.push(execution)
      return scene.behave(execution, signal)
    }
    const standIn: Tool = tool.client ? tool : { ...tool, execute }
    if (!faults.tool || tool.name !== facts.tool?.name) return standIn
    const faulty = keep(chaosTool(standIn, faults.tool))
    return {
      ...faulty,
      execute: async (input: unknown, execution: ToolExecution) => {
        hungCalls += 1
        try {
          return await faulty.execute?.(input, execution)
        } finally {
          hungCalls -= 1
        }
      },
    }
  }

  // Handoffs are removed, because another agent's model would be called.
  const tools = wrapTools(parts.tools, {
    wrap: ({ handoff: _handoff, ...tool }) => createStandIn(tool),
    trim: ({ handoff: _handoff, ...traits }) => traits,
    hasTeam: false,
  })
  // Tools are created on first lookup. The fault must be planned even if the agent never looks the tool up.
  if (faults.tool && facts.tool) tools.get(facts.tool.name)
  const storeChaos = faults.store && keep(chaosStore(innerStore, faults.store))
  // The agent must have no effect outside the check, so it has no shared budgets and no telemetry.
  const changes = { tools, clock, budgets: undefined, telemetry: undefined }
  const agent = rebindAgent(parts, storeChaos ?? innerStore, changes)

  /** Advances time whenever only time can make progress. */
  async function until(work: Promise<unknown>, isInVain = (): boolean => false): Promise<void> {
    let isOver = false
    const end = (): void => void (isOver = true)
    work.then(end, end)
    const isSo = (): boolean => isOver || isInVain()
    while (!isSo()) {
      await nextTask()
      if (isStopped) throw new CheckFailure('the process was stopped')
      const stalls = modelChaos?.landed.some(({ fault }) => fault === 'stalled') === true
      if (!isSo() && (isModelStill || stalls || hungCalls > 0)) clock.leap()
    }
  }

  async function settle<Value>(work: Promise<Value>): Promise<Value> {
    await until(work)
    return work
  }

  const start = (text: string, options?: SayOptions): Run =>
    agent.run(text, { session: sessionId, ...options, context }) as Run

  const rest = (run: Run): Promise<RunResult> => settle(run.result)

  function stop(): void {
    isStopped = true
    clock.stop()
  }

  return {
    agent,
    chaos,
    start,
    rest,
    stop,
    say: (text: string, options?: SayOptions): Promise<RunResult> => rest(start(text, options)),
    resume: async () => settle(agent.resume(sessionId, { context })) as Promise<Run>,
    /** The result of a run, or null if its process died. */
    async restOrDeath(run: Run): Promise<RunResult | null> {
      const isDead = (): boolean => (storeChaos?.landed.length ?? 0) > 0
      await until(run.result, isDead)
      // Pending writes are reported in the same tick.
      await nextTask(5)
      return isDead() ? null : run.result
    },
    async untilFault(): Promise<void> {
      while (chaos.every(({ landed }) => landed.length === 0)) await nextTask()
    },
    die(): void {
      stop()
      scene.time.aheadMs += leaseMs * 2
    },
  }
}

export async function nextTask(times = 1): Promise<void> {
  for (let i = 0; i < times; i++) await wait(systemClock, 0)
}

export const hang: Behavior = (_execution, signal) => untilAborted(signal)

export const callOf = (tool: SampledTool, n = 0): Turn => ({
  calls: [{ name: tool.name, input: tool.input(n) }],
})

export function textsOf(messages: readonly Message[] = [], role: 'user' | 'tool'): string[] {
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

/** The clock of one process. It follows the system clock and can leap to the next timer. */
function createLeapingClock(time: SceneTime) {
  const timers = new Map<unknown, { due: number; fire: () => void; handle: unknown }>()
  let lastId = 0
  let isStopped = false

  function clearTimeout(id: unknown): void {
    systemClock.clearTimeout(timers.get(id)?.handle)
    timers.delete(id)
  }

  function arm(id: unknown, due: number, fire: () => void): void {
    const check = (): void => {
      // Timers may fire early on a busy system, because they count from the start of the task that set them.
      if (time.now() < due) return arm(id, due, fire)
      timers.delete(id)
      fire()
    }
    systemClock.clearTimeout(timers.get(id)?.handle)
    timers.set(id, { due, fire, handle: systemClock.setTimeout(check, Math.max(0, due - time.now())) })
  }

  return {
    now: () => time.now(),
    clearTimeout,
    setTimeout(fire: () => void, ms: number): unknown {
      const id = ++lastId
      if (!isStopped) arm(id, time.now() + ms, fire)
      return id
    },
    leap(): void {
      const next = Math.min(...[...timers.values()].map(({ due }) => due))
      if (!Number.isFinite(next)) return
      // Dates are whole milliseconds.
      time.aheadMs += Math.max(0, Math.ceil(next - time.now()))
      for (const [id, { due, fire }] of timers) arm(id, due, fire)
    },
    stop(): void {
      isStopped = true
      for (const id of timers.keys()) clearTimeout(id)
    },
  }
}
