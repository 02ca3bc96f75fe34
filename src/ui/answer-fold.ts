import { omitUndefined } from '../../guards/lib/json.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AssistantMessage, MediaPart, Message, UserMessage } from '../../machines/agent/messages.js'
import {
  type AgentState,
  type Elicitation,
  isWorkState,
  type PendingCall,
  type UnansweredCall,
  type Reason,
} from '../../machines/agent/run-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { isOfCall, toApprovalId, getCallTitle } from '../web/approval-id.js'
import { getShownContent, type Turn } from '../web/chat-turn.js'
import { toAnswerId, isSteering } from '../core/sessions/find-turn.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import type { AnswerEncoder, AnswerProtocol } from '../web/sse.js'
import type { Protocol, UIMessageChunk } from './ui-message-types.js'
import {
  invalidArguments,
  parseArguments,
  toBranchesPart,
  toElicitationPart,
  toEndPart,
  toFileParts,
  toFinishReason,
  toMemorySource,
  toOutputChunk,
  toSourceParts,
  toSteeringPart,
  getAnswerText,
  toTermsParts,
} from './ui-messages.js'

type Kind = 'text' | 'reasoning'
type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>
type CallDelta = Extract<AgentEvent, { type: 'tool_call_delta' }>

/** Corrects streamed content when the final message arrives. `ai` 6 cannot reset a step, so it gets only final text. */
class TextFold {
  readonly #isBuffered: boolean
  readonly #write: (chunk: UIMessageChunk) => void
  #stepId = ''
  #parts = 0
  #open: { kind: Kind; id: string } | null = null
  #shown: Record<Kind, string> = { text: '', reasoning: '' }
  /** Calls with streamed arguments that the final message has not confirmed. */
  readonly #calls = new Set<string>()

  constructor(protocol: Protocol, write: (chunk: UIMessageChunk) => void) {
    this.#isBuffered = protocol === 'v6'
    this.#write = write
  }

  startStep(stepId: string): void {
    this.#stepId = stepId
    this.#parts = 0
    this.#shown = { text: '', reasoning: '' }
  }

  addChunk({ text, reasoning = '', reset, finished }: Chunk): void {
    if (this.#isBuffered) return
    if (reset) this.#resetStep()
    if (reasoning !== '') this.#writeDelta('reasoning', reasoning)
    if (text !== '') this.#writeDelta('text', text)
    if (finished) this.close()
  }

  addCallDelta({ callId, name, delta }: CallDelta): void {
    if (this.#isBuffered) return
    if (!this.#calls.has(callId)) {
      this.close()
      this.#calls.add(callId)
      this.#write({ type: 'tool-input-start', toolCallId: callId, toolName: name })
    }
    if (delta !== '') this.#write({ type: 'tool-input-delta', toolCallId: callId, inputTextDelta: delta })
  }

  /** Removes unconfirmed calls, because the answer ended early. */
  withdrawCalls(): void {
    if (this.#calls.size === 0) return
    const shown = this.#shown
    this.#resetStep()
    for (const kind of ['reasoning', 'text'] as const)
      if (shown[kind] !== '') this.#writeDelta(kind, shown[kind])
  }

  /** Compares the streamed content with the final message. Writes what is missing, and resets what differs. */
  settleMessage(message: AssistantMessage): void {
    const final = { text: getAnswerText(message), reasoning: message.reasoning ?? '' }
    const differs = (kind: Kind): boolean => this.#shown[kind] !== '' && this.#shown[kind] !== final[kind]
    const ids = (message.tool_calls ?? []).map(({ id }) => id)
    const isOther = [...this.#calls].some((id) => !ids.includes(id))
    if (isOther || differs('text') || differs('reasoning')) this.#resetStep()
    this.#calls.clear()
    for (const kind of ['reasoning', 'text'] as const)
      if (this.#shown[kind] === '' && final[kind] !== '') this.#writeDelta(kind, final[kind])
    this.close()
  }

  close(): void {
    if (this.#open) this.#write({ type: `${this.#open.kind}-end`, id: this.#open.id })
    this.#open = null
  }

  #resetStep(): void {
    this.#open = null
    if (this.#calls.size > 0 || this.#shown.text + this.#shown.reasoning !== '')
      this.#write({ type: 'reset-step' })
    this.#calls.clear()
    this.#shown = { text: '', reasoning: '' }
  }

  #writeDelta(kind: Kind, delta: string): void {
    if (this.#open?.kind !== kind) {
      this.close()
      const id = `${this.#stepId}.${this.#parts++}`
      this.#open = { kind, id }
      this.#write({ type: `${kind}-start`, id })
    }
    this.#shown[kind] += delta
    this.#write({ type: `${kind}-delta`, id: (this.#open as { id: string }).id, delta })
  }
}

type ChildEvent = Extract<AgentEvent, { type: 'child_event' }>

interface ChildState {
  callId: string
  path: string[]
  text: string
  calls: { callId: string; name: string; status: string }[]
}

/** Sends one `data-child` per call again on each change. Calls that need approval become calls of the message. */
class ChildFold {
  readonly #write: (chunk: UIMessageChunk) => void
  readonly #children = new Map<string, ChildState>()
  readonly #shown = new Set<string>()

  constructor(write: (chunk: UIMessageChunk) => void) {
    this.#write = write
  }

  rememberCall(callId: string): void {
    this.#shown.add(callId)
  }

  showCall(call: UnansweredCall): void {
    const { callId: toolCallId, name: toolName } = call
    this.rememberCall(toolCallId)
    const { input } = parseArguments(call.arguments)
    const title = getCallTitle(call)
    this.#write({ type: 'tool-input-available', toolCallId, toolName, input, dynamic: true, title })
  }

  handleEvent({ callId, path, event }: ChildEvent): void {
    switch (event.type) {
      case 'stream_chunk': {
        const { text, reset } = event
        if (text === '' && !reset) return
        const data = { callId, path, text, ...(reset && { reset }) }
        return this.#write({ type: 'data-child-text', data, transient: true })
      }
      case 'assistant_message':
        return this.#updateChild(callId, path, (child) => {
          child.text = event.message.content ?? ''
        })
      case 'tool_call':
        return this.#updateChild(callId, path, ({ calls }) => {
          const { id, function: called } = event.call
          calls.push({ callId: id, name: called.name, status: 'called' })
        })
      case 'tool_result': {
        this.#updateChild(callId, path, ({ calls }) => {
          const call = calls.find(({ callId }) => callId === event.callId)
          if (call) call.status = event.status
          // The call started before this page subscribed.
          else calls.push({ callId: event.callId, name: event.name, status: event.status })
        })
        const toolCallId = `${callId}/${event.callId}`
        if (this.#shown.has(toolCallId)) this.#write(toOutputChunk(toolCallId, event))
      }
    }
  }

  #updateChild(callId: string, path: string[], change: (child: ChildState) => void): void {
    const child = this.#children.get(callId) ?? { callId, path, text: '', calls: [] }
    change(child)
    this.#children.set(callId, child)
    this.#write({ type: 'data-child', id: callId, data: structuredClone(child) })
  }
}

interface AnswerFoldOptions {
  protocol: Protocol
  turn: Omit<Turn, 'before' | 'ends'> | null
  showsTurn: boolean
  answeredRequests?: ReadonlySet<string>
  point?: BranchPoint | undefined
}

/** The message starts with the first event that has content, and ends when the run rests. */
export class AnswerFold implements AnswerEncoder<UIMessageChunk> {
  readonly #protocol: Protocol
  readonly #chunks: UIMessageChunk[] = []
  readonly #text: TextFold
  readonly #children: ChildFold
  #runId = ''
  #messageId: string | null
  /** Events that arrived before the message id was known. */
  readonly #pendingEvents: AgentEvent[] = []
  #hasStarted = false
  #isInStep = false
  #stepId = ''
  #state: AgentState = 'RUNNING'
  #reason: Reason | null = null
  #wakeAt: number | null = null
  #error: string | null = null
  /** Whether the message has a pause part, which the end replaces. */
  #wasPaused = false
  readonly #sent = new Set<string>()
  /** The open elicitations, by the ids of the calls that represent them. */
  readonly #elicitations = new Set<string>()
  readonly #point: BranchPoint | undefined
  readonly #answered: ReadonlySet<string>

  constructor({ protocol, turn, showsTurn, answeredRequests, point }: AnswerFoldOptions) {
    const write = (chunk: UIMessageChunk): void => this.#write(chunk)
    this.#protocol = protocol
    this.#text = new TextFold(protocol, write)
    this.#children = new ChildFold(write)
    this.#messageId = turn?.messageId ?? null
    this.#answered = answeredRequests ?? this.#sent
    this.#point = point
    if (turn === null) return
    this.#state = turn.state
    this.#reason = turn.reason
    this.#wakeAt = turn.wakeAt
    this.#error = turn.error?.message ?? null
    this.#wasPaused = turn.state === 'PAUSED'
    this.#start()
    if (showsTurn) this.#writeTurn(turn)
    else for (const call of turn.pending) this.#rememberRequest(call)
  }

  begin(): UIMessageChunk[] {
    return this.#chunks.splice(0)
  }

  handleEvent(event: AgentEvent): UIMessageChunk[] {
    this.#readEvent(event)
    return this.#chunks.splice(0)
  }

  #readEvent(event: AgentEvent): void {
    this.#runId = event.runId
    switch (event.type) {
      case 'run_started':
      case 'run_ended':
        return
      case 'user_message':
        return this.#handleUserMessage(event.message)
      case 'error':
        this.#error = event.message
        return
      case 'state_changed':
        this.#state = event.to
        this.#reason = event.reason
        this.#wakeAt = event.wakeAt ?? null
    }
    if (this.#messageId === null && !isAnswerEvent(event)) this.#pendingEvents.push(event)
    else {
      this.#start()
      this.#writeEvent(event)
    }
  }

  end(): UIMessageChunk[] {
    this.#start()
    this.#text.withdrawCalls()
    this.#text.close()
    this.#endStep()
    this.#writeEnd()
    if (this.#state === 'CANCELLED') this.#write({ type: 'abort', reason: 'cancelled' })
    else if (this.#state === 'ERROR')
      this.#write({ type: 'error', errorText: this.#error ?? 'The run failed.' })
    else
      this.#write({ type: 'finish', finishReason: toFinishReason(this.#state, this.#reason, this.#protocol) })
    return this.#chunks.splice(0)
  }

  #write(chunk: UIMessageChunk): void {
    this.#chunks.push(chunk)
  }

  /** Writes the end as a part, as in the history, because `abort` and `error` chunks leave nothing in a message. */
  #writeEnd(): void {
    const [state, reason] = [this.#state, this.#reason]
    const isExpected = state === 'WAITING_FOR_INPUT' || reason === 'end_turn'
    if (isWorkState(state) || reason === null || (isExpected && !this.#wasPaused)) return
    const error = this.#error === null ? undefined : { code: reason, message: this.#error }
    this.#write(toEndPart({ state, reason, ...omitUndefined({ error, wakeAt: this.#wakeAt ?? undefined }) }))
  }

  #start(): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#messageId ??= `${this.#runId}.answer`
    this.#write({ type: 'start', messageId: this.#messageId })
    if (this.#point) this.#write(toBranchesPart(this.#point))
    for (const event of this.#pendingEvents.splice(0)) this.#writeEvent(event)
  }

  #handleUserMessage(message: UserMessage): void {
    if (isSteering(message)) {
      this.#start()
      this.#writeSteering(message)
    }
    // With several user messages, the answer belongs to the last one.
    else if (!this.#hasStarted) this.#messageId = toAnswerId(message)
  }

  #writeSteering(message: UserMessage): void {
    this.#text.close()
    this.#write(toSteeringPart(message, this.#protocol))
  }

  #writeEvent(event: AgentEvent): void {
    switch (event.type) {
      case 'step_started':
        if (event.stepType === 'inference' && !event.summary) this.#startStep(event.stepId)
        return
      case 'stream_chunk':
        this.#startStep(event.stepId)
        this.#text.addChunk(event)
        return
      case 'tool_call_delta':
        this.#startStep(event.stepId)
        this.#text.addCallDelta(event)
        return
      case 'assistant_message':
        this.#startStep(event.stepId)
        this.#writeAnswer(event.message)
        return
      case 'tool_call':
        return this.#writeCall(event.call.id, event.call.function)
      case 'tool_progress': {
        const { callId, name, progress } = event
        return this.#write({ type: 'data-progress', data: { callId, name, progress }, transient: true })
      }
      case 'tool_result':
        return this.#writeResult(event.callId, event)
      case 'approval_requested':
        return this.#writeApproval(event)
      case 'elicitation_requested':
        return this.#writeElicitation(event)
      case 'usage': {
        const { inputTokens, outputTokens, totalTokens, cost } = event.run
        const usage = { inputTokens, outputTokens, totalTokens, cost }
        return this.#write({ type: 'message-metadata', messageMetadata: { usage } })
      }
      case 'memory':
        for (const [i, { source }] of event.snippets.entries())
          this.#write(toMemorySource(event.id, i, source))
        return
      case 'child_event':
        return this.#children.handleEvent(event)
      default: {
        if (hiddenEvents.has(event.type)) return
        const { id: _id, runId: _runId, seq: _seq, at: _at, ...data } = event
        this.#write({ type: 'data-statewright', data, transient: true })
      }
    }
  }

  #startStep(stepId: string): void {
    if (this.#isInStep && this.#stepId === stepId) return
    this.#text.withdrawCalls()
    this.#text.close()
    this.#endStep()
    this.#isInStep = true
    this.#stepId = stepId
    this.#text.startStep(stepId)
    this.#write({ type: 'start-step' })
  }

  #endStep(): void {
    if (this.#isInStep) this.#write({ type: 'finish-step' })
    this.#isInStep = false
  }

  #writeAnswer(message: AssistantMessage): void {
    this.#text.settleMessage(message)
    for (const source of toSourceParts(message.id, message.annotations)) this.#write(source)
    this.#writeFiles(message.media)
  }

  #writeCall(toolCallId: string, call: { name: string; arguments: string }): void {
    const { input, isJson } = parseArguments(call.arguments)
    const named = { toolCallId, toolName: call.name, input }
    if (isJson) this.#write({ type: 'tool-input-available', ...named })
    else this.#write({ type: 'tool-input-error', ...named, errorText: invalidArguments })
  }

  #writeResult(
    toolCallId: string,
    result: { status: ResultStatus; content: string; media?: MediaPart[] },
  ): void {
    this.#closeElicitations(toolCallId)
    this.#write(toOutputChunk(toolCallId, result))
    this.#writeFiles(result.media)
  }

  #writeFiles(media: readonly MediaPart[] | undefined): void {
    for (const { type, url, mediaType } of toFileParts(media)) this.#write({ type, url, mediaType })
  }

  /** A sub-agent's call is added to the message so that the page can show the request. */
  #writeApproval(call: UnansweredCall): void {
    const approvalId = toApprovalId(call)
    if (!this.#isNewRequest(approvalId)) return
    if (call.path) this.#children.showCall(call)
    for (const part of toTermsParts(call)) this.#write(part)
    this.#write({ type: 'tool-approval-request', toolCallId: call.callId, approvalId })
  }

  /** An elicitation is shown as a separate call, which the page answers like its own calls. */
  #writeElicitation(call: UnansweredCall & { elicitation: Elicitation }): void {
    if (!this.#isNewRequest(toApprovalId(call))) return
    this.#elicitations.add(call.callId)
    this.#write({ type: 'tool-input-available', dynamic: true, ...toElicitationPart(call) })
  }

  #isNewRequest(id: string): boolean {
    if (this.#sent.has(id) || this.#answered.has(id)) return false
    this.#sent.add(id)
    return true
  }

  /** Closes the elicitation on pages that did not answer it. */
  #closeElicitations(callId: string): void {
    for (const toolCallId of this.#elicitations) {
      if (!isOfCall(toolCallId, callId)) continue
      this.#elicitations.delete(toolCallId)
      this.#write({ type: 'tool-output-available', toolCallId, output: { action: 'closed' } })
    }
  }

  #rememberRequest(call: PendingCall): void {
    this.#sent.add(toApprovalId(call))
    if (call.path && !call.elicitation) this.#children.rememberCall(call.callId)
  }

  #writeTurn({ messages, settled, pending }: Pick<Turn, 'messages' | 'settled' | 'pending'>): void {
    for (const message of messages) this.#writeMessage(message)
    for (const { callId, ...result } of settled) this.#writeResult(callId, result)
    for (const call of pending) {
      if (call.needs === 'approval') this.#writeApproval(call)
      else if (call.needs === 'elicitation') this.#writeElicitation(call)
    }
  }

  #writeMessage(message: Message): void {
    switch (message.role) {
      case 'assistant':
        if (message.internal) return
        this.#startStep(message.id)
        this.#writeAnswer(message)
        for (const call of message.tool_calls ?? []) this.#writeCall(call.id, call.function)
        return
      case 'tool': {
        const status = (message.data?.['status'] ?? 'ok') as ResultStatus
        const shown = { ...message, content: getShownContent(message), status }
        return this.#writeResult(message.tool_call_id, shown)
      }
      case 'user':
        if (isSteering(message) && !message.internal) this.#writeSteering(message)
    }
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
    createEncoder: (answer) => new AnswerFold({ protocol, ...answer }),
    toErrorChunk: (errorText) => ({ type: 'error', errorText }),
    headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
    last: 'data: [DONE]\n\n',
  }
}
