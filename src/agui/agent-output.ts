import type { AgentEvent } from '../../machines/agent/announcements.js'
import {
  type AssistantMessage,
  getMessageIdOfStep,
  parseMessageNumber,
} from '../../machines/agent/messages.js'
import { isRestState } from '../../machines/agent/run-result.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { toJson } from '../core/base/json.js'
import { isOfCall } from '../web/approval-id.js'
import { type CallNames, createCallNames, joinMedia, toReasoningId } from './agui-messages.js'
import type { PageMessages } from './page-messages.js'
import type { AGUIInterrupt, AGUIMessage } from './protocol.js'

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

interface AgentPrefix {
  subagentRunId?: string
  /** The prefix of the agent's message ids, because each session numbers messages from one. */
  messages: string
  calls: string
}

export type AgentOutput = ReturnType<typeof createAgentOutput>

export function createAgentOutput(page: PageMessages, prefix: AgentPrefix, names: CallNames) {
  const { subagentRunId } = prefix
  const owner = omitUndefined({ subagentRunId })
  const steps = new Set<string>()
  /** Streamed messages that no final message has confirmed yet. */
  const unconfirmed = new Set<string>()
  /** The message ids reserved for results, by call id. */
  const results = new Map<string, string>()
  const openCalls = new Set<string>()

  const toMessageId = (messageId: string): string => `${prefix.messages}${messageId}`
  const getCallName = (callId: string): string => `${prefix.calls}${names.getLatestName(callId)}`

  function startStep(event: EventOf<'step_started'>): void {
    const { stepType, stepId } = event
    if ((stepType !== 'inference' && stepType !== 'hosted') || steps.has(stepId)) return
    steps.add(stepId)
    const details = stepType === 'hosted' ? { name: event.name } : { attempt: event.attempt }
    const metadata = { statewright: { stepType, ...details } }
    page.write({ type: 'STEP_STARTED', stepName: stepId, metadata })
  }

  function writeChunk({ stepId, text, reasoning = '', reset, finished }: EventOf<'stream_chunk'>): void {
    const id = toMessageId(getMessageIdOfStep(stepId))
    if (reset) {
      page.removeAnswers([id])
      unconfirmed.delete(id)
    }
    if (reasoning !== '' || text !== '') unconfirmed.add(id)
    if (reasoning !== '') page.writeText(toReasoningId(id), 'reasoning', reasoning)
    if (text !== '' || finished) page.closeText(toReasoningId(id))
    if (text !== '') page.writeText(id, 'assistant', text)
    if (finished) page.closeText(id)
  }

  function writeCallDelta({ stepId, callId, name, delta }: EventOf<'tool_call_delta'>): void {
    const messageId = getMessageIdOfStep(stepId)
    const id = toMessageId(messageId)
    unconfirmed.add(id)
    page.closeText(toReasoningId(id))
    page.closeText(id)
    names.nameCall(callId, messageId)
    page.writeCallDelta(id, getCallName(callId), { name, arguments: delta })
  }

  /** Compares the page with the final message. Adds what is missing, and replaces what differs. */
  function acceptMessage({ message }: EventOf<'assistant_message'>): void {
    const id = toMessageId(message.id)
    unconfirmed.delete(id)
    expectResults(message)
    const calls = message.tool_calls ?? []
    page.keepCalls(
      id,
      calls.map((call) => `${prefix.calls}${names.nameCall(call.id, message.id)}`),
    )
    settleText(toReasoningId(id), 'reasoning', message.reasoning ?? '')
    settleText(id, 'assistant', message.content || message.refusal || '')
    const { media, annotations } = message
    for (const [name, value] of Object.entries({ media, annotations }))
      if (value) page.writeCustom(name, { messageId: id, [name]: toJson(value) })
  }

  function settleText(id: string, role: 'assistant' | 'reasoning', text: string): void {
    page.closeText(id)
    const shown = page.getText(id)
    if (shown === text) return
    if (!text.startsWith(shown)) {
      const calls = role === 'assistant' ? page.getCalls(id) : []
      const isEmpty = text === '' && calls.length === 0
      const content = { id, content: text, ...owner }
      const whole: AGUIMessage =
        role === 'assistant' && calls.length > 0
          ? { ...content, role, toolCalls: [...calls] }
          : { ...content, role }
      page.replaceMessages([id], isEmpty ? [] : [whole])
    } else if (role === 'assistant') page.addText(id, role, text.slice(shown.length))
    else {
      page.writeText(id, role, text.slice(shown.length))
      page.closeText(id)
    }
  }

  /** Results follow their message in the transcript, in the order of the calls. */
  function expectResults({ id, tool_calls: calls = [] }: AssistantMessage): void {
    const number = parseMessageNumber(id)
    for (const [i, call] of calls.entries())
      results.set(call.id, number === null ? `${id}.${i}` : `m${number + 1 + i}`)
  }

  function writeCall({ stepId, call }: EventOf<'tool_call'>): void {
    const messageId = getMessageIdOfStep(stepId)
    names.nameCall(call.id, messageId)
    openCalls.add(call.id)
    page.writeCall(toMessageId(messageId), getCallName(call.id), call.function)
  }

  /** Records a result that the page already has or is about to receive. */
  function rememberResult(result: Pick<EventOf<'tool_result'>, 'callId' | 'content' | 'media' | 'status'>) {
    const { callId, content, media, status } = result
    openCalls.delete(callId)
    const toolCallId = getCallName(callId)
    const messageId = results.get(callId)
    const id = messageId === undefined ? `${toolCallId}.result` : toMessageId(messageId)
    const shown = joinMedia(content, media)
    const error = status === 'ok' ? {} : { error: content }
    page.remember({ id, role: 'tool', toolCallId, content: shown, ...error, ...owner })
    return { messageId: id, toolCallId, content: shown }
  }

  return {
    openCalls,
    getCallName,
    rememberResult,

    rememberMessage(message: AssistantMessage): void {
      for (const { id } of message.tool_calls ?? []) names.nameCall(id, message.id)
      expectResults(message)
    },

    handleEvent(event: AgentEvent): void {
      page.setMark(event.at, owner)
      switch (event.type) {
        case 'step_started':
          return startStep(event)
        case 'step_completed': {
          const { stepId, outcome } = event
          const metadata = { statewright: { outcome } }
          if (steps.delete(stepId)) page.write({ type: 'STEP_FINISHED', stepName: stepId, metadata })
          return
        }
        case 'stream_chunk':
          return writeChunk(event)
        case 'tool_call_delta':
          return writeCallDelta(event)
        case 'assistant_message':
          return acceptMessage(event)
        case 'tool_call':
          return writeCall(event)
        case 'tool_progress': {
          const { callId, name, progress } = event
          const value = { toolCallId: getCallName(callId), name, progress: toJson(progress) }
          return page.writeCustom('tool_progress', value)
        }
        case 'tool_result': {
          const { status, durationMs, truncated } = event
          const metadata = { statewright: { status, durationMs, ...(truncated && { truncated }) } }
          page.write({ type: 'TOOL_CALL_RESULT', ...rememberResult(event), role: 'tool', metadata })
        }
      }
    },

    /** Closes open messages and steps, and removes unconfirmed messages. */
    end(at: number): void {
      page.setMark(at, owner)
      page.removeAnswers([...unconfirmed])
      unconfirmed.clear()
      for (const stepName of steps) page.write({ type: 'STEP_FINISHED', stepName })
      steps.clear()
    },
  }
}

interface SubAgent {
  id: string
  output: AgentOutput
  rests: boolean
  failure: { message: string; code: string } | null
}

/** The sub-agents of a run. Each one is announced with its first event, and closed once. */
export function createSubAgents(page: PageMessages, lead: AgentOutput) {
  const members = new Map<string, SubAgent>()
  const closed = new Set<string>()

  function announce(callId: string, name: string, id: string, timestamp: number): SubAgent {
    const [, above] = findSubAgent(callId)
    const parentToolCallId = getCallName(callId)
    const prefix = { subagentRunId: id, messages: `${id}.`, calls: `${parentToolCallId}/` }
    const output = createAgentOutput(page, prefix, createCallNames())
    const member: SubAgent = { id, output, rests: false, failure: null }
    members.set(callId, member)
    const parent = above && { parentSubagentRunId: above.id }
    const started = { subagentRunId: id, name, parentToolCallId, ...parent }
    page.emit({ timestamp, type: 'SUBAGENT_STARTED', ...started })
    return member
  }

  function getCallName(callId: string): string {
    const [above, member] = findSubAgent(callId)
    return member ? member.output.getCallName(callId.slice(above.length + 1)) : lead.getCallName(callId)
  }

  /** Finds the innermost sub-agent of a call. Call ids may also contain slashes. */
  function findSubAgent(callId: string): [string, SubAgent | undefined] {
    let found: [string, SubAgent | undefined] = ['', undefined]
    for (const [id, member] of members)
      if (callId.startsWith(`${id}/`) && id.length >= found[0].length) found = [id, member]
    return found
  }

  function close(callId: string, timestamp: number, interrupts?: readonly AGUIInterrupt[]): void {
    const member = members.get(callId)
    if (!member) return
    const { id: subagentRunId, output, rests, failure } = member
    output.end(timestamp)
    members.delete(callId)
    closed.add(subagentRunId)
    const mark = { timestamp, subagentRunId }
    if (failure) return page.emit({ ...mark, type: 'SUBAGENT_ERROR', ...failure })
    const own = interrupts?.filter((interrupt) => interrupt.subagentRunId === subagentRunId) ?? []
    const interruptIds = own.map(({ id }) => id)
    const outcome =
      rests && interrupts ? ({ type: 'suspended', interruptIds } as const) : ({ type: 'success' } as const)
    page.emit({ ...mark, type: 'SUBAGENT_FINISHED', outcome })
  }

  function closeAll(
    matches: (id: string) => boolean,
    at: number,
    interrupts?: readonly AGUIInterrupt[],
  ): void {
    for (const callId of [...members.keys()].toReversed()) if (matches(callId)) close(callId, at, interrupts)
  }

  return {
    getCallName,
    findOwner: (callId: string): string | undefined => findSubAgent(callId)[1]?.id,
    closeCall: (callId: string, at: number): void => closeAll((id) => isOfCall(id, callId), at),
    end: (at: number, interrupts: readonly AGUIInterrupt[]): void => closeAll(() => true, at, interrupts),

    handleEvent({ callId, path, event, at }: EventOf<'child_event'>): void {
      if (closed.has(event.runId)) return
      const member = members.get(callId) ?? announce(callId, path.at(-1) ?? '', event.runId, at)
      switch (event.type) {
        case 'state_changed':
          member.rests = isRestState(event.to)
          return
        case 'error':
          member.failure = { message: event.message, code: event.code }
          return
        case 'run_ended':
          if (event.state === 'CANCELLED')
            member.failure = { message: 'The sub-agent was cancelled.', code: 'cancelled' }
          return close(callId, at)
        default:
          member.output.handleEvent(event)
      }
    },
  }
}
