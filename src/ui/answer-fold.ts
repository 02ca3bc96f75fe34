import { omitUndefined } from '../../guards/lib/json.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AssistantMessage, MediaPart, Message, UserMessage } from '../../machines/agent/messages.js'
import {
  type AgentState,
  type Elicitation,
  isWorkState,
  type UnansweredCall,
} from '../../machines/agent/run-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { isOfCall, toApprovalId, getCallTitle } from '../web/approval-id.js'
import { getShownContent } from '../web/chat-turn.js'
import { toAnswerId, isSteering } from '../core/sessions/find-turn.js'
import type { AnswerProtocol } from '../web/sse.js'
import type { Subscription } from '../web/subscription.js'
import type { Protocol, UIMessageChunk } from './ui-message-types.js'
import {
  invalidArguments,
  parseArguments,
  toBranchesPart,
  toElicitationPart,
  toEndPart,
  toFileParts,
  toFinishReason,
  toOutputChunk,
  toSourceParts,
  toSteeringPart,
  getAnswerText,
  toTermsParts,
} from './ui-messages.js'

type Kind = 'text' | 'reasoning'
type Write = (chunk: UIMessageChunk) => void
type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

const kinds = ['reasoning', 'text'] as const

/** Corrects streamed content when the final message arrives. `ai` 6 cannot reset a step, so it gets only final text. */
function createTextFold(protocol: Protocol, write: Write) {
  const isBuffered = protocol === 'v6'
  let stepId = ''
  let parts = 0
  let open: { kind: Kind; id: string } | null = null
  let shown: Record<Kind, string> = { text: '', reasoning: '' }
  /** Calls with streamed arguments that the final message has not confirmed. */
  const calls = new Set<string>()

  const close = (): void => {
    if (open) write({ type: `${open.kind}-end`, id: open.id })
    open = null
  }
  const resetStep = (): void => {
    open = null
    if (calls.size > 0 || shown.text + shown.reasoning !== '') write({ type: 'reset-step' })
    calls.clear()
    shown = { text: '', reasoning: '' }
  }
  const writeDelta = (kind: Kind, delta: string): void => {
    if (delta === '') return
    if (open?.kind !== kind) {
      close()
      open = { kind, id: `${stepId}.${parts++}` }
      write({ type: `${kind}-start`, id: open.id })
    }
    shown[kind] += delta
    write({ type: `${kind}-delta`, id: open.id, delta })
  }
  return {
    startStep: (id: string): void => {
      stepId = id
      parts = 0
      shown = { text: '', reasoning: '' }
    },
    addChunk: ({ text, reasoning = '', reset, finished }: EventOf<'stream_chunk'>): void => {
      if (isBuffered) return
      if (reset) resetStep()
      writeDelta('reasoning', reasoning)
      writeDelta('text', text)
      if (finished) close()
    },
    addCallDelta: ({ callId, name, delta }: EventOf<'tool_call_delta'>): void => {
      if (isBuffered) return
      if (!calls.has(callId)) {
        close()
        calls.add(callId)
        write({ type: 'tool-input-start', toolCallId: callId, toolName: name })
      }
      if (delta !== '') write({ type: 'tool-input-delta', toolCallId: callId, inputTextDelta: delta })
    },
    /** Compares the streamed content with the final message. Writes what is missing, and resets what differs. */
    settleMessage: (message: AssistantMessage): void => {
      const final = { text: getAnswerText(message), reasoning: message.reasoning ?? '' }
      const ids = (message.tool_calls ?? []).map(({ id }) => id)
      const isOther = [...calls].some((id) => !ids.includes(id))
      if (isOther || kinds.some((kind) => shown[kind] !== '' && shown[kind] !== final[kind])) resetStep()
      calls.clear()
      for (const kind of kinds) if (shown[kind] === '') writeDelta(kind, final[kind])
      close()
    },
    /** Ends the answer. Unconfirmed calls are removed, because it ended early. */
    close: (): void => {
      const { text, reasoning } = shown
      if (calls.size > 0) {
        resetStep()
        writeDelta('reasoning', reasoning)
        writeDelta('text', text)
      }
      close()
    },
    closePart: close,
  }
}

interface ChildState {
  callId: string
  path: string[]
  text: string
  calls: { callId: string; name: string; status: string }[]
}

/** Sends one `data-child` per call again on each change. Calls that need approval become calls of the message. */
function createChildFold(write: Write) {
  const children = new Map<string, ChildState>()
  const shown = new Set<string>()

  return {
    rememberCall: (callId: string): void => void shown.add(callId),
    showCall: (call: UnansweredCall): void => {
      const { callId: toolCallId, name: toolName } = call
      shown.add(toolCallId)
      const { input } = parseArguments(call.arguments)
      const title = getCallTitle(call)
      write({ type: 'tool-input-available', toolCallId, toolName, input, dynamic: true, title })
    },
    handleEvent: ({ callId, path, event }: EventOf<'child_event'>): void => {
      const child = children.get(callId) ?? { callId, path, text: '', calls: [] }
      const { calls } = child
      switch (event.type) {
        case 'stream_chunk': {
          const { text, reset } = event
          if (text === '' && !reset) return
          const data = { callId, path, text, ...(reset && { reset }) }
          return write({ type: 'data-child-text', data, transient: true })
        }
        case 'assistant_message':
          child.text = event.message.content ?? ''
          break
        case 'tool_call':
          calls.push({ callId: event.call.id, name: event.call.function.name, status: 'called' })
          break
        case 'tool_result': {
          const call = calls.find((one) => one.callId === event.callId)
          if (call) call.status = event.status
          // The call started before this page subscribed.
          else calls.push({ callId: event.callId, name: event.name, status: event.status })
          break
        }
        default:
          return
      }
      children.set(callId, child)
      write({ type: 'data-child', id: callId, data: structuredClone(child) })
      if (event.type !== 'tool_result') return
      const toolCallId = `${callId}/${event.callId}`
      if (shown.has(toolCallId)) write(toOutputChunk(toolCallId, event))
    },
  }
}

type AnswerFoldOptions = { protocol: Protocol } & Pick<
  Subscription,
  'turn' | 'showsTurn' | 'answeredRequests' | 'point'
>

/** The message starts with the first event that has content, and ends when the run rests. */
export function createAnswerFold({ protocol, turn, showsTurn, answeredRequests, point }: AnswerFoldOptions) {
  const chunks: UIMessageChunk[] = []
  const write: Write = (chunk) => void chunks.push(chunk)
  const take = (): UIMessageChunk[] => chunks.splice(0)
  const text = createTextFold(protocol, write)
  const children = createChildFold(write)
  let runId = ''
  let messageId = turn?.messageId ?? null
  /** Events that arrived before the message id was known. */
  const early: AgentEvent[] = []
  let hasStarted = false
  let openStep: string | null = null
  let state: AgentState = turn?.state ?? 'RUNNING'
  let reason = turn?.reason ?? null
  let wakeAt = turn?.wakeAt ?? null
  let failure = turn?.error?.message ?? null
  const sent = new Set<string>(answeredRequests)
  /** The open elicitations, by the ids of the calls that represent them. */
  const elicitations = new Set<string>()

  const start = (): void => {
    if (hasStarted) return
    hasStarted = true
    messageId ??= `${runId}.answer`
    write({ type: 'start', messageId })
    if (point) write(toBranchesPart(point))
    for (const event of early.splice(0)) writeEvent(event)
  }
  const endStep = (): void => {
    text.close()
    if (openStep !== null) write({ type: 'finish-step' })
    openStep = null
  }
  const startStep = (stepId: string): void => {
    if (openStep === stepId) return
    endStep()
    openStep = stepId
    text.startStep(stepId)
    write({ type: 'start-step' })
  }
  const writeFiles = (media: readonly MediaPart[] | undefined): void => {
    for (const { type, url, mediaType } of toFileParts(media)) write({ type, url, mediaType })
  }
  const writeAnswer = (stepId: string, message: AssistantMessage): void => {
    startStep(stepId)
    text.settleMessage(message)
    for (const source of toSourceParts(message.id, message.annotations)) write(source)
    writeFiles(message.media)
  }
  const writeCall = (toolCallId: string, call: { name: string; arguments: string }): void => {
    const { input, isJson } = parseArguments(call.arguments)
    const named = { toolCallId, toolName: call.name, input }
    if (isJson) write({ type: 'tool-input-available', ...named })
    else write({ type: 'tool-input-error', ...named, errorText: invalidArguments })
  }
  const writeResult = (
    callId: string,
    result: { status: ResultStatus; content: string; media?: MediaPart[] },
  ): void => {
    // Closes the elicitation on pages that did not answer it.
    for (const toolCallId of elicitations) {
      if (!isOfCall(toolCallId, callId)) continue
      elicitations.delete(toolCallId)
      write({ type: 'tool-output-available', toolCallId, output: { action: 'closed' } })
    }
    write(toOutputChunk(callId, result))
    writeFiles(result.media)
  }
  const isNewRequest = (id: string): boolean => {
    if (sent.has(id)) return false
    sent.add(id)
    return true
  }
  /** A sub-agent's call is added to the message so that the page can show the request. */
  const writeApproval = (call: UnansweredCall): void => {
    const approvalId = toApprovalId(call)
    if (!isNewRequest(approvalId)) return
    if (call.path) children.showCall(call)
    for (const part of toTermsParts(call)) write(part)
    write({ type: 'tool-approval-request', toolCallId: call.callId, approvalId })
  }
  /** An elicitation is shown as a separate call, which the page answers like its own calls. */
  const writeElicitation = (call: UnansweredCall & { elicitation: Elicitation }): void => {
    if (!isNewRequest(toApprovalId(call))) return
    elicitations.add(call.callId)
    write({ type: 'tool-input-available', dynamic: true, ...toElicitationPart(call) })
  }
  const writeSteering = (message: UserMessage): void => {
    text.closePart()
    write(toSteeringPart(message, protocol))
  }
  const writeMessage = (message: Message): void => {
    switch (message.role) {
      case 'assistant':
        if (message.internal) return
        writeAnswer(message.id, message)
        for (const call of message.tool_calls ?? []) writeCall(call.id, call.function)
        return
      case 'tool': {
        const status = (message.data?.['status'] ?? 'ok') as ResultStatus
        return writeResult(message.tool_call_id, { ...message, content: getShownContent(message), status })
      }
      case 'user':
        if (isSteering(message) && !message.internal) writeSteering(message)
    }
  }
  const writeEvent = (event: AgentEvent): void => {
    switch (event.type) {
      case 'step_started':
        if (event.stepType === 'inference' && !event.summary) startStep(event.stepId)
        return
      case 'stream_chunk':
        startStep(event.stepId)
        return text.addChunk(event)
      case 'tool_call_delta':
        startStep(event.stepId)
        return text.addCallDelta(event)
      case 'assistant_message':
        return writeAnswer(event.stepId, event.message)
      case 'tool_call':
        return writeCall(event.call.id, event.call.function)
      case 'tool_progress': {
        const { callId, name, progress } = event
        return write({ type: 'data-progress', data: { callId, name, progress }, transient: true })
      }
      case 'tool_result':
        return writeResult(event.callId, event)
      case 'approval_requested':
        return writeApproval(event)
      case 'elicitation_requested':
        return writeElicitation(event)
      case 'usage': {
        const { inputTokens, outputTokens, totalTokens, cost } = event.run
        const usage = { inputTokens, outputTokens, totalTokens, cost }
        return write({ type: 'message-metadata', messageMetadata: { usage } })
      }
      case 'memory':
        for (const [i, { source: title }] of event.snippets.entries()) {
          const sourceId = `${event.id}.found.${i}`
          write({ type: 'source-document', sourceId, mediaType: 'text/plain', title })
        }
        return
      case 'child_event':
        return children.handleEvent(event)
      default: {
        if (hiddenEvents.has(event.type)) return
        const { id: _id, runId: _runId, seq: _seq, at: _at, ...data } = event
        write({ type: 'data-statewright', data, transient: true })
      }
    }
  }
  const readEvent = (event: AgentEvent): void => {
    runId = event.runId
    switch (event.type) {
      case 'run_started':
      case 'run_ended':
        return
      case 'user_message':
        if (isSteering(event.message)) {
          start()
          writeSteering(event.message)
        }
        // With several user messages, the answer belongs to the last one.
        else if (!hasStarted) messageId = toAnswerId(event.message)
        return
      case 'error':
        failure = event.message
        return
      case 'state_changed':
        state = event.to
        reason = event.reason
        wakeAt = event.wakeAt ?? null
    }
    if (messageId === null && !isAnswerEvent(event)) early.push(event)
    else {
      start()
      writeEvent(event)
    }
  }
  /** Writes the end as a part, as in the history, because `abort` and `error` chunks leave nothing in a message. */
  const writeEnd = (): void => {
    const isExpected = state === 'WAITING_FOR_INPUT' || reason === 'end_turn'
    // The end also replaces the pause part of a message.
    if (isWorkState(state) || reason === null || (isExpected && turn?.state !== 'PAUSED')) return
    const error = failure === null ? undefined : { code: reason, message: failure }
    write(toEndPart({ state, reason, ...omitUndefined({ error, wakeAt: wakeAt ?? undefined }) }))
  }

  if (turn) {
    start()
    if (showsTurn) {
      for (const message of turn.messages) writeMessage(message)
      for (const { callId, ...result } of turn.settled) writeResult(callId, result)
    }
    for (const call of turn.pending) {
      if (!showsTurn) {
        sent.add(toApprovalId(call))
        if (call.path && !call.elicitation) children.rememberCall(call.callId)
      } else if (call.needs === 'approval') writeApproval(call)
      else if (call.needs === 'elicitation') writeElicitation(call)
    }
  }
  return {
    begin: take,
    handleEvent: (event: AgentEvent): UIMessageChunk[] => {
      readEvent(event)
      return take()
    },
    end: (): UIMessageChunk[] => {
      start()
      endStep()
      writeEnd()
      if (state === 'CANCELLED') write({ type: 'abort', reason: 'cancelled' })
      else if (state === 'ERROR') write({ type: 'error', errorText: failure ?? 'The run failed.' })
      else write({ type: 'finish', finishReason: toFinishReason(state, reason, protocol) })
      return take()
    },
  }
}

/** Policies and grants are internal to the app. */
const hiddenEvents: ReadonlySet<AgentEvent['type']> = new Set([
  'step_progress',
  'step_completed',
  'step_prepared',
  'policy_decided',
  'approval_decided',
  'grant_changed',
  'message_queued',
  'message_dequeued',
  'waiting_for_slot',
])

/** Events that are part of the answer, which follows the user message. */
const answerEvents: ReadonlySet<AgentEvent['type']> = new Set([
  'stream_chunk',
  'tool_call_delta',
  'assistant_message',
  'tool_call',
  'tool_result',
  'approval_requested',
  'elicitation_requested',
])

function isAnswerEvent(event: AgentEvent): boolean {
  return event.type === 'step_started' ? event.stepType === 'inference' : answerEvents.has(event.type)
}

export function createUIProtocol(protocol: Protocol): AnswerProtocol<UIMessageChunk> {
  return {
    createEncoder: (answer) => createAnswerFold({ protocol, ...answer }),
    toErrorChunk: (errorText) => ({ type: 'error', errorText }),
    headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
    last: 'data: [DONE]\n\n',
  }
}
