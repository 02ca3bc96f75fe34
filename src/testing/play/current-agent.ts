import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext, AgentMachineEvent } from '../../../machines/agent/context.js'
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
import { RunningCall } from '../../core/tools/running-call.js'

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

type Traits = Record<string, ToolTraits>

/** Adapts recorded entries to what the current agent would do, and adds the differences to `found`. */
export function createCurrentAgent(scene: PlayScene, live: LiveTools | null) {
  const { recording, parts, standIn, appContext, policiesAbove, isSame } = scene
  /** Calls and messages for which a difference has been reported. */
  const reported = new Set<string>()
  const notes = new Set<string>()
  const uncleared = new Set<string>()

  /** Preserves whether sub-agents had a store for their logs. */
  function createTraits(then: Traits, speaker: string | null | undefined): Traits {
    const wasKept = Object.values(then).some(({ delegate }) => delegate)
    const { traits } = getSpeakerTools(parts.tools, speaker)
    const adapted = Object.entries(traits).map(
      ([name, { delegate, ...others }]) =>
        [name, { ...others, ...(delegate && wasKept && { delegate }) }] as const,
    )
    return Object.fromEntries(adapted)
  }

  function createRunParts(then: Pick<AgentContext, 'config' | 'tools'> & { speaker?: string | null }) {
    const config = mergeConfig(then.config, recording.agent.config, scene.config, scene.limits)
    const tools = createTraits(then.tools, then.speaker)
    return { config, tools, features: getFeatures(parts, config) }
  }

  async function adaptEntry(
    entry: RecordContent,
    isHidden: boolean,
    context: AgentContext | undefined,
    found: FoundDifference[],
  ): Promise<RecordContent> {
    if (entry.type === 'start') {
      const input = completeInput(entry.input)
      return { ...entry, input: { ...input, ...createRunParts(input) } }
    }
    if (entry.type === 'snapshot') {
      const then = entry.state.context as AgentContext
      const input = completeInput({ ...then, speaker: '', now: 0, input: [] })
      const runParts = createRunParts({ ...input, speaker: then.speaker })
      return { ...entry, state: { ...entry.state, context: { ...then, ...runParts } } }
    }
    if (entry.type !== 'event' || !context) return entry
    return { ...entry, event: await adaptEvent(entry.event, isHidden, context, found) }
  }

  async function adaptEvent(
    event: AgentMachineEvent,
    isHidden: boolean,
    context: AgentContext,
    found: FoundDifference[],
  ): Promise<AgentMachineEvent> {
    switch (event.type) {
      case 'xstate.done.actor.model':
      case 'xstate.done.actor.conclusion': {
        const { output } = event
        if (!isHidden) return { ...event, output: await adaptAnswer(output) } as AgentMachineEvent
        for (const { id } of output.response.toolCalls) uncleared.add(id)
        return event
      }
      case 'TOOL_RESULT': {
        const call = context.calls.find(({ id }) => id === event.callId)
        const result = call && (await adaptResult(event.result, call))
        return result ? { ...event, result } : event
      }
      case 'RESUMED':
        return event.tools ? { ...event, tools: createTraits(event.tools, context.speaker) } : event
      case 'HANDED_OFF':
        return { ...event, tools: createTraits(event.tools, event.to) }
      default:
        return event
    }

    async function adaptAnswer(output: ModelOutput): Promise<ModelOutput> {
      const { toolCalls } = output.response
      const fit = standIn.output ? {} : await checkOutput(output)
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
        const isBlind = typeof tool?.needsApproval === 'function' && appContext === undefined
        const hint = isBlind
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

    async function checkOutput(output: ModelOutput): Promise<Pick<ModelOutput, 'outputProblem'>> {
      const kind = classifyResponse(output.response)
      if (!parts.output || (kind !== 'answer' && kind !== 'empty')) return {}
      await parts.output.ready?.()
      const reading = await readOutput(output.response.text, parts.output)
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

    async function adaptResult(result: ToolResult, call: BatchCall): Promise<ToolResult | undefined> {
      const tool = getSpeakerTools(parts.tools, context.speaker).get(call.name)
      if (call.hosted || tool?.delegate || tool?.client || uncleared.has(call.id)) return undefined
      const liveResult = live?.getResult(context, call.id)
      if (liveResult) return compareLiveResult(result, await liveResult, call)
      const { status, durationMs } = result
      const hasRun = status === 'ok' || status === 'error' || status === 'denied' || status === 'timeout'
      if (standIn.tools || (!hasRun && status !== 'invalid_arguments')) return undefined
      if (!tool) {
        reported.add(call.id)
        return { status: 'unknown_tool', content: `There is no tool '${call.name}'.`, durationMs }
      }
      const parsed = await parseArguments(tool, call.arguments)
      if (parsed.ok === hasRun) return undefined
      const [recorded, now] = parsed.ok ? ['did not match', 'match'] : ['matched', 'do not match']
      const words = parsed.ok ? "now match the tool's schema" : "no longer match the tool's schema"
      const why = parsed.ok ? result.content : parsed.message
      const message = `The arguments of ${formatCall(call)} ${words}: ${why}`
      reported.add(call.id)
      found.push({ by: 'arguments', subject: call.name, recorded, now, message })
      return parsed.ok ? undefined : { status: 'invalid_arguments', content: parsed.message, durationMs }
    }

    function compareLiveResult(then: ToolResult, now: ToolResult | null, call: BatchCall) {
      if (now === null) return undefined
      const isScreened = context.features.resultShields || isHidden
      if (isScreened)
        notes.add(`the results of ${call.name}, because shields review them before they are stored`)
      const isOther =
        then.status !== now.status ||
        (!isScreened &&
          (!isSameResult(then.content, now.content, call) ||
            JSON.stringify(then.media ?? []) !== JSON.stringify(now.media ?? [])))
      if (!isOther) return undefined
      reported.add(call.id)
      const statuses = then.status === now.status ? '' : ` (${then.status} then, ${now.status} now)`
      const message = `${formatCall(call)} returns a different result${statuses}:\n${formatTextDifference(then.content, now.content)}`
      found.push({ by: 'result', subject: call.name, recorded: then.content, now: now.content, message })
      return { ...now, durationMs: then.durationMs }
    }
  }

  function isSameResult(then: string, now: string, { name, arguments: text }: BatchCall): boolean {
    if (!isSame) return maskVolatile(then) === maskVolatile(now)
    try {
      return isSame(then, now, { name, arguments: text })
    } catch (cause) {
      throw new ReplayError('invalid_option', `isSame threw: ${describeError(cause)}`, 'isSame', { cause })
    }
  }

  return { reported, notes, adaptEntry }
}

export type LiveTools = ReturnType<typeof createLiveTools>

export function createLiveTools(parts: AgentParts, appContext: unknown) {
  const running = new Map<string, { call: RunningCall; result: Promise<ToolResult | null> }>()

  const toKey = ({ runId, batchNumber }: AgentContext, callId: string): string =>
    `${runId}.${batchNumber}:${callId}`

  /** Stops the calls that the run does not wait for. */
  function stopOthers(keys: ReadonlySet<string>): void {
    for (const [key, { call }] of running) {
      if (keys.has(key)) continue
      running.delete(key)
      call.stop(new Error('The replayed run continued without this call.'))
    }
  }

  return {
    /** Starts the run's open calls, and stops calls that the run no longer waits for. */
    startCalls(context: AgentContext): void {
      const open = context.calls.filter(({ started, result }) => started === true && result === undefined)
      stopOthers(new Set(open.map(({ id }) => toKey(context, id))))
      for (const call of open) {
        const key = toKey(context, call.id)
        const tools = getSpeakerTools(parts.tools, context.speaker)
        const tool = tools.get(call.name)
        // Calls executed by the provider are part of the answer. Sub-agents are replayed from their own recordings.
        if (running.has(key) || call.hosted || tool?.delegate || tool?.client) continue
        let end: (result: ToolResult | null) => void = () => undefined
        const result = new Promise<ToolResult | null>((resolve) => (end = resolve))
        const { runId, sessionId, batchNumber, config } = context
        const options = {
          tools,
          defaultTimeoutMs: config.toolCalls.timeoutMs,
          maxResultChars: config.toolCalls.maxResultChars,
          clock: systemClock,
          context: appContext,
          runId,
          sessionId,
          batchId: `${runId}.${batchNumber}`,
          onProgress: () => undefined,
          onCallEnd: (_call: RunningCall, ended: ToolResult | null) => end(ended),
        }
        const started = new RunningCall(call, options)
        running.set(key, { call: started, result })
      }
    },
    getResult: (context: AgentContext, callId: string) => running.get(toKey(context, callId))?.result,
    stopAll: () => stopOthers(new Set()),
  }
}

/** The parts of the current agent, or of the first agent if the current agent is unknown. */
export function getSpeakerParts(parts: AgentParts, speaker: string | null | undefined): AgentParts {
  return isLostSpeaker(parts.tools, speaker) ? parts : toSpeaker(parts, speaker)
}

const getFate = (call: ModelOutput['calls'][number]) => (isDenied(call) ? 'denied' : call.needs)
