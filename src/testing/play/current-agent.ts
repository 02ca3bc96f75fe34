import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import { type ModelOutput, classifyResponse } from '../../../machines/agent/model-response.js'
import { type BatchCall, type ToolResult, type ToolTraits } from '../../../machines/agent/batch-calls.js'
import { isDenied } from '../../../machines/agent/approvals.js'
import { getFeatures } from '../../core/agent/agent-internals.js'
import { systemClock } from '../../core/base/clock.js'
import { describeError } from '../../core/base/errors.js'
import { CallAbort } from '../../core/base/abort.js'
import { toPrepareOptions } from '../../core/effects/prepare-options.js'
import { type AgentParts, getSpeakerTools, isLostSpeaker, toSpeaker } from '../../core/live/agent-parts.js'
import type { PoliciesAbove } from '../../core/live/runtime.js'
import type { RecordContent } from '../../core/sessions/log/log-record.js'
import { completeInput } from '../../core/sessions/log/stored-state.js'
import { readOutput } from '../../core/structured/read-output.js'
import { parseArguments } from '../../core/tools/parse-arguments.js'
import { prepareCalls } from '../../core/tools/prepare-calls.js'
import { mergeConfig, maskVolatile } from './record-session.js'
import { ReplayError, type ReadableRecording } from './recording.js'
import type { StandIn } from './recorded-agent.js'
import { formatCall, type FoundDifference, needsWords, formatTextDifference } from './compare-agents.js'
import { RunningCall } from '../../core/tools/running-batch.js'

export interface PlayScene {
  recording: ReadableRecording
  parts: AgentParts
  config: AgentConfig
  standIn: StandIn
  isLive: boolean
  /** The policies of the parent run, for the session of a sub-agent. */
  policiesAbove?: PoliciesAbove | undefined
  appContext: unknown
  limits: Partial<AgentConfig['limits']>
  isSame: ((recorded: string, now: string, call: { name: string; arguments: string }) => boolean) | undefined
}

export type RecordingRow = ReadableRecording['records'][number]
type AnswerEvent = Extract<
  AgentMachineEvent,
  { type: 'xstate.done.actor.model' | 'xstate.done.actor.conclusion' }
>
type ResultEvent = Extract<AgentMachineEvent, { type: 'TOOL_RESULT' }>

export class CurrentAgent {
  /** Calls and messages for which a difference has been reported. */
  readonly reported = new Set<string>()
  readonly notes = new Set<string>()
  readonly #scene: PlayScene
  readonly #live: LiveTools | null
  readonly #uncleared = new Set<string>()

  constructor(scene: PlayScene, live: LiveTools | null) {
    this.#scene = scene
    this.#live = live
  }

  async adaptEntry(
    entry: RecordContent,
    row: RecordingRow,
    context: AgentContext | undefined,
    found: FoundDifference[],
  ): Promise<RecordContent> {
    switch (entry.type) {
      case 'start': {
        const input = completeInput(entry.input)
        return { ...entry, input: { ...input, ...this.#createRunParts(input) } }
      }
      case 'snapshot': {
        const then = entry.state.context as AgentContext
        const runParts = this.#createRunParts({
          ...completeInput({ ...then, speaker: '', now: 0, input: [] }),
          speaker: then.speaker,
        })
        return { ...entry, state: { ...entry.state, context: { ...then, ...runParts } } }
      }
      case 'event':
        return { ...entry, event: await this.#adaptEvent(entry.event, row, context, found) }
      default:
        return entry
    }
  }

  #createRunParts(
    then: Pick<AgentContext, 'config' | 'tools'> & { speaker?: string | null },
  ): Pick<AgentContext, 'config' | 'tools' | 'features'> {
    const { parts, config: own, recording, limits } = this.#scene
    const config = mergeConfig(then.config, recording.agent.config, own, limits)
    return {
      config,
      tools: this.#createTraits(then.tools, then.speaker),
      features: getFeatures(parts, config),
    }
  }

  /** Preserves whether sub-agents had a store for their logs. */
  #createTraits(
    then: Record<string, ToolTraits>,
    speaker: string | null | undefined,
  ): Record<string, ToolTraits> {
    const wasKept = Object.values(then).some(({ delegate }) => delegate)
    return Object.fromEntries(
      Object.entries(getSpeakerTools(this.#scene.parts.tools, speaker).traits).map(
        ([name, { delegate, ...traits }]) => [name, { ...traits, ...(delegate && wasKept && { delegate }) }],
      ),
    )
  }

  async #adaptEvent(
    event: AgentMachineEvent,
    row: RecordingRow,
    context: AgentContext | undefined,
    found: FoundDifference[],
  ): Promise<AgentMachineEvent> {
    if (!context) return event
    switch (event.type) {
      case 'xstate.done.actor.model':
      case 'xstate.done.actor.conclusion':
        return { ...event, output: await this.#adaptAnswer(event, context, row, found) } as AgentMachineEvent
      case 'TOOL_RESULT': {
        const call = context.calls.find(({ id }) => id === event.callId)
        const result = call && (await this.#adaptResult(event, call, context, row, found))
        return result ? { ...event, result } : event
      }
      case 'RESUMED':
        return event.tools ? { ...event, tools: this.#createTraits(event.tools, context.speaker) } : event
      case 'HANDED_OFF':
        return { ...event, tools: this.#createTraits(event.tools, event.to) }
      default:
        return event
    }
  }

  async #adaptAnswer(
    { output }: AnswerEvent,
    context: AgentContext,
    row: RecordingRow,
    found: FoundDifference[],
  ): Promise<ModelOutput> {
    const { parts, appContext, standIn, policiesAbove } = this.#scene
    const { toolCalls } = output.response
    if (row.hidden) {
      for (const { id } of toolCalls) this.#uncleared.add(id)
      return output
    }
    const fit = standIn.output ? {} : await this.#checkOutput(output, found)
    if (standIn.tools) return { ...output, ...fit }
    const tools = getSpeakerTools(parts.tools, context.speaker)
    const speaker = getSpeakerParts(parts, context.speaker)
    const needs = await prepareCalls(toolCalls, tools, {
      ...toPrepareOptions(speaker, context, { context: appContext, policiesAbove }, new CallAbort()),
      clock: systemClock,
    })
    const compareCall = async (then: ModelOutput['calls'][number], i: number) => {
      const now = needs[i]
      const called = toolCalls[i]?.function
      if (!now || !called || then.approvalTimedOut || getFate(then) === getFate(now)) return then
      const tool = tools.get(called.name)
      const asks = tool?.needsApproval
      const hint =
        typeof asks === 'function' && appContext === undefined
          ? ' (Its needsApproval was called without an app context. Pass it as { context }.)'
          : ''
      const isValid = tool === undefined || (await parseArguments(tool, called.arguments)).ok
      const [recorded] = needsWords[getFate(then)]
      const isRefused = getFate(now) === 'nobody' && !isValid
      const present = isRefused ? 'is refused for invalid arguments' : needsWords[getFate(now)][1]
      const message = `${formatCall(called)} ${recorded}, and ${present} now.${hint}`
      found.push({ by: 'approval', subject: called.name, recorded, now: present, message })
      return now
    }
    return { ...output, calls: await Promise.all(output.calls.map(compareCall)), ...fit }
  }

  async #checkOutput(
    output: ModelOutput,
    found: FoundDifference[],
  ): Promise<Pick<ModelOutput, 'outputProblem'>> {
    const { parts } = this.#scene
    const kind = classifyResponse(output.response)
    if (!parts.output || (kind !== 'answer' && kind !== 'empty')) return {}
    await parts.output.ready?.()
    const reading = await readOutput(output.response.text, parts.output.validate, parts.output.schema)
    const now = reading.ok ? null : reading.problem
    const then = output.outputProblem ?? null
    if ((now === null) !== (then === null)) {
      const message =
        now === null
          ? `The answer now matches the output schema; it did not when recorded: ${then ?? ''}`
          : `The answer no longer matches the output schema: ${now}`
      found.push({ by: 'output', subject: 'output', recorded: then ?? 'fits', now: now ?? 'fits', message })
    }
    return { outputProblem: now }
  }

  async #adaptResult(
    { result }: ResultEvent,
    call: BatchCall,
    context: AgentContext,
    row: RecordingRow,
    found: FoundDifference[],
  ): Promise<ToolResult | undefined> {
    const { parts, standIn } = this.#scene
    const tool = getSpeakerTools(parts.tools, context.speaker).get(call.name)
    if (call.hosted || tool?.delegate || tool?.client || this.#uncleared.has(call.id)) return undefined
    const live = this.#live?.getResult(context, call.id)
    if (live) return this.#compareLiveResult(result, await live, call, context, row, found)
    const { status, durationMs } = result
    const hasRun = status === 'ok' || status === 'error' || status === 'denied' || status === 'timeout'
    if (standIn.tools || (!hasRun && status !== 'invalid_arguments')) return undefined
    if (!tool) this.reported.add(call.id)
    if (!tool) return { status: 'unknown_tool', content: `There is no tool '${call.name}'.`, durationMs }
    const parsed = await parseArguments(tool, call.arguments)
    if (parsed.ok === hasRun) return undefined
    const [recorded, now] = parsed.ok ? ['did not match', 'match'] : ['matched', 'do not match']
    const words = parsed.ok ? "now match the tool's schema" : "no longer match the tool's schema"
    const why = parsed.ok ? result.content : parsed.message
    const message = `The arguments of ${formatCall(call)} ${words}: ${why}`
    this.reported.add(call.id)
    found.push({ by: 'arguments', subject: call.name, recorded, now, message })
    return parsed.ok ? undefined : { status: 'invalid_arguments', content: parsed.message, durationMs }
  }

  #compareLiveResult(
    then: ToolResult,
    now: ToolResult | null,
    call: BatchCall,
    { features }: AgentContext,
    row: RecordingRow,
    found: FoundDifference[],
  ): ToolResult | undefined {
    if (now === null) return undefined
    const isScreened = features.resultShields || row.hidden === true
    if (isScreened)
      this.notes.add(`the results of ${call.name}, because shields review them before they are stored`)
    const isOther =
      then.status !== now.status ||
      (!isScreened &&
        (!this.#isSame(then.content, now.content, call) ||
          JSON.stringify(then.media ?? []) !== JSON.stringify(now.media ?? [])))
    if (!isOther) return undefined
    this.reported.add(call.id)
    const statuses = then.status === now.status ? '' : ` (${then.status} then, ${now.status} now)`
    const message = `${formatCall(call)} returns a different result${statuses}:\n${formatTextDifference(then.content, now.content)}`
    found.push({ by: 'result', subject: call.name, recorded: then.content, now: now.content, message })
    return { ...now, durationMs: then.durationMs }
  }

  #isSame(then: string, now: string, { name, arguments: text }: BatchCall): boolean {
    const { isSame } = this.#scene
    if (!isSame) return maskVolatile(then) === maskVolatile(now)
    try {
      return isSame(then, now, { name, arguments: text })
    } catch (cause) {
      throw new ReplayError('invalid_option', `isSame threw: ${describeError(cause)}`, 'isSame', { cause })
    }
  }
}

export class LiveTools {
  readonly #parts: AgentParts
  readonly #appContext: unknown
  readonly #running = new Map<string, { call: RunningCall; result: Promise<ToolResult | null> }>()

  constructor(parts: AgentParts, appContext: unknown) {
    this.#parts = parts
    this.#appContext = appContext
  }

  /** Starts the run's open calls, and stops calls that the run no longer waits for. */
  startCalls(context: AgentContext): void {
    const open = context.calls.filter(({ started, result }) => started === true && result === undefined)
    const keys = new Set(open.map(({ id }) => toKey(context, id)))
    for (const [key, { call }] of this.#running) if (!keys.has(key)) this.#stopCall(key, call)
    for (const call of open) {
      const key = toKey(context, call.id)
      const tools = getSpeakerTools(this.#parts.tools, context.speaker)
      const tool = tools.get(call.name)
      // Calls executed by the provider are part of the answer. Sub-agents are replayed from their own recordings.
      if (this.#running.has(key) || call.hosted || tool?.delegate || tool?.client) continue
      let end: (result: ToolResult | null) => void = () => undefined
      const result = new Promise<ToolResult | null>((resolve) => (end = resolve))
      const { toolCalls } = context.config
      const running = new RunningCall(
        call,
        {
          tools,
          defaultTimeoutMs: toolCalls.timeoutMs,
          maxResultChars: toolCalls.maxResultChars,
          clock: systemClock,
          context: this.#appContext,
          runId: context.runId,
          sessionId: context.sessionId,
          batchId: `${context.runId}.${context.batchNumber}`,
          onProgress: () => undefined,
        },
        { onCallEnd: (_call, ended) => end(ended) },
      )
      this.#running.set(key, { call: running, result })
    }
  }

  getResult(context: AgentContext, callId: string): Promise<ToolResult | null> | undefined {
    return this.#running.get(toKey(context, callId))?.result
  }

  stopAll(): void {
    for (const [key, { call }] of this.#running) this.#stopCall(key, call)
  }

  #stopCall(key: string, call: RunningCall): void {
    this.#running.delete(key)
    call.stop(new Error('The replayed run continued without this call.'))
  }
}

function toKey({ runId, batchNumber }: AgentContext, callId: string): string {
  return `${runId}.${batchNumber}:${callId}`
}

/** The parts of the current agent, or of the first agent if the current agent is unknown. */
export function getSpeakerParts(parts: AgentParts, speaker: string | null | undefined): AgentParts {
  return isLostSpeaker(parts.tools, speaker) ? parts : toSpeaker(parts, speaker)
}

const getFate = (call: ModelOutput['calls'][number]) => (isDenied(call) ? 'denied' : call.needs)
