import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AssistantMessage, MediaPart, Message } from '../../machines/agent/messages.js'
import type { AgentState, UnansweredCall, Reason } from '../../machines/agent/run-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { approvalIdOf } from '../web/approval-id.js'
import { answerIdOf, isSteering, shownResult, type Turn } from '../web/turn.js'
import { ChildFold } from './child-fold.js'
import type { Protocol, UIMessageChunk } from './chunks.js'
import {
  endingOf,
  filesOf,
  finishReasonOf,
  foundSource,
  inputOf,
  outputOf,
  sourcesOf,
  userParts,
} from './parts.js'
import { WordsFold } from './words-fold.js'

export interface FoldOptions {
  protocol: Protocol
  /** What there was of the answer before the first event. */
  turn: Turn | null
  /** Whether the page is to be told that, too. */
  showsTurn: boolean
  /** Questions that are asked no more. */
  answered?: ReadonlySet<string>
}

/**
 * Makes of what a run tells one message of a page: chunk by chunk, as `useChat` reads them. It begins with the first event
 * that says something and ends at the run's rest.
 */
export class AnswerFold {
  readonly #protocol: Protocol
  readonly #write: (chunk: UIMessageChunk) => void
  readonly #words: WordsFold
  readonly #children: ChildFold
  #runId = ''
  #messageId: string | null
  /** What was told before. */
  readonly #early: AgentEvent[] = []
  #hasStarted = false
  #isInStep = false
  #stepId = ''
  #state: AgentState = 'RUNNING'
  #reason: Reason | null = null
  #error: string | null = null
  /** Questions that the page knows. */
  readonly #asked = new Set<string>()
  /** Questions that it is not to be asked. */
  readonly #answered: ReadonlySet<string>

  constructor({ protocol, turn, showsTurn, answered }: FoldOptions, write: (chunk: UIMessageChunk) => void) {
    this.#protocol = protocol
    this.#write = write
    this.#words = new WordsFold(protocol, write)
    this.#children = new ChildFold(write)
    this.#messageId = turn?.messageId ?? null
    this.#answered = answered ?? this.#asked
    if (turn) this.#begin()
    if (turn && showsTurn) this.#show(turn)
    else for (const call of turn?.pending ?? []) this.#know(call)
  }

  /** What the run tells next. */
  take(event: AgentEvent): void {
    this.#runId = event.runId
    switch (event.type) {
      case 'run_started':
      case 'run_ended':
        return
      case 'user_message':
        this.#hear(event.message)
        return
      case 'error':
        this.#error = event.message
        return
      case 'state_changed':
        this.#state = event.to
        this.#reason = event.reason
    }
    // What the answer is called is known once it is known what it answers.
    if (this.#messageId === null && !isOfAnswer(event)) this.#early.push(event)
    else {
      this.#begin()
      this.#tell(event)
    }
  }

  /** The run rests: nothing comes any more. */
  end(): void {
    this.#begin()
    this.#words.close()
    this.#endStep()
    if (this.#state === 'CANCELLED') this.#write({ type: 'abort', reason: 'cancelled' })
    else if (this.#state === 'ERROR')
      this.#write({ type: 'error', errorText: this.#error ?? 'The run has failed.' })
    else this.#finish()
  }

  #finish(): void {
    const [state, reason] = [this.#state, this.#reason]
    const isAsWished = state === 'COMPLETED' || state === 'WAITING_FOR_INPUT'
    if (!isAsWished) {
      const why = this.#error === null ? {} : { message: this.#error }
      this.#write({ type: 'data-statewright', data: { type: 'run_ended', state, reason, ...why } })
    }
    this.#write({ type: 'finish', finishReason: finishReasonOf(state, reason, this.#protocol) })
  }

  #begin(): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#messageId ??= `${this.#runId}.answer`
    this.#write({ type: 'start', messageId: this.#messageId })
    for (const event of this.#early.splice(0)) this.#tell(event)
  }

  #hear(message: Message): void {
    if (message.role !== 'user') return
    if (!isSteering(message)) {
      // The last of several is the one that is answered.
      if (!this.#hasStarted) this.#messageId = answerIdOf(message)
      return
    }
    this.#begin()
    this.#steer(message)
  }

  #steer({ id, content }: Extract<Message, { role: 'user' }>): void {
    this.#words.close()
    const parts = userParts(content)
    if (this.#protocol === 'v7') this.#write({ type: 'steering-message', id, parts })
    else this.#write({ type: 'data-steering', id, data: { parts } })
  }

  #tell(event: AgentEvent): void {
    switch (event.type) {
      case 'step_started':
        if (event.stepType === 'inference' && !event.summary) this.#startStep(event.stepId)
        return
      case 'stream_chunk':
        this.#startStep(event.stepId)
        this.#words.hear(event)
        return
      case 'assistant_message':
        this.#startStep(event.stepId)
        this.#answer(event.message)
        return
      case 'tool_call':
        this.#call(event.call.id, event.call.function)
        return
      case 'tool_progress': {
        const { callId, name, progress } = event
        this.#write({ type: 'data-progress', data: { callId, name, progress }, transient: true })
        return
      }
      case 'tool_result':
        this.#result(event.callId, event)
        return
      case 'approval_requested':
        this.#ask(event)
        return
      case 'usage':
        this.#use(event.run)
        return
      case 'memory':
        for (const [i, { source }] of event.snippets.entries()) this.#write(foundSource(event.id, i, source))
        return
      case 'child_event':
        this.#children.take(event)
        return
      case 'step_progress':
      case 'step_completed':
        return
      default:
        this.#note(event)
    }
  }

  #startStep(stepId: string): void {
    if (this.#isInStep && this.#stepId === stepId) return
    this.#words.close()
    this.#endStep()
    this.#isInStep = true
    this.#stepId = stepId
    this.#words.begin(stepId)
    this.#write({ type: 'start-step' })
  }

  #endStep(): void {
    if (this.#isInStep) this.#write({ type: 'finish-step' })
    this.#isInStep = false
  }

  #answer(message: AssistantMessage): void {
    this.#words.settle(message)
    for (const source of sourcesOf(message.id, message.annotations)) this.#write(source)
    this.#files(message.media)
  }

  #call(toolCallId: string, asked: { name: string; arguments: string }): void {
    // Ids of calls come again: what is asked about this one is asked anew.
    for (const id of this.#asked)
      if (/^[~/]/.test(id.slice(toolCallId.length)) && id.startsWith(toolCallId)) this.#asked.delete(id)
    const { input, isJson } = inputOf(asked.arguments)
    const named = { toolCallId, toolName: asked.name, input }
    if (isJson) this.#write({ type: 'tool-input-available', ...named })
    else this.#write({ type: 'tool-input-error', ...named, errorText: 'The arguments are no JSON.' })
  }

  #result(
    toolCallId: string,
    { status, content, media }: { status: ResultStatus; content: string; media?: MediaPart[] },
  ): void {
    const ending = endingOf(status)
    if (ending === 'available')
      this.#write({ type: 'tool-output-available', toolCallId, output: outputOf(content) })
    else if (ending === 'denied') this.#write({ type: 'tool-output-denied', toolCallId })
    else this.#write({ type: 'tool-output-error', toolCallId, errorText: content })
    this.#files(media)
  }

  #files(media: readonly MediaPart[] | undefined): void {
    for (const { type, url, mediaType } of filesOf(media)) this.#write({ type, url, mediaType })
  }

  /** A sub-agent's call is in no message of ours: it is shown for the sake of the question. */
  #ask(call: UnansweredCall): void {
    const approvalId = approvalIdOf(call)
    if (this.#asked.has(approvalId) || this.#answered.has(approvalId)) return
    this.#asked.add(approvalId)
    if (call.path) this.#children.show(call)
    this.#write({ type: 'tool-approval-request', toolCallId: call.callId, approvalId })
  }

  /** The page has been asked before. */
  #know(call: UnansweredCall): void {
    this.#asked.add(approvalIdOf(call))
    if (call.path) this.#children.know(call.callId)
  }

  #use({
    inputTokens,
    outputTokens,
    totalTokens,
    cost,
  }: Extract<AgentEvent, { type: 'usage' }>['run']): void {
    const usage = { inputTokens, outputTokens, totalTokens, cost }
    this.#write({ type: 'message-metadata', messageMetadata: { usage } })
  }

  /** What happens beside the answer: told as it happens, and kept only where a guard has halted the run. */
  #note(event: AgentEvent): void {
    const { id: _id, runId: _runId, seq: _seq, at: _at, ...data } = event
    const isKept = event.type === 'guardrail' && event.action === 'halt'
    this.#write({ type: 'data-statewright', data, ...(!isKept && { transient: true }) })
  }

  #show({ messages, settled, pending, state, reason, error }: Turn): void {
    this.#state = state
    this.#reason = reason
    this.#error = error?.message ?? null
    for (const message of messages) this.#showMessage(message)
    for (const { callId, ...result } of settled) this.#result(callId, result)
    for (const call of pending) if (call.needs === 'approval') this.#ask(call)
  }

  #showMessage(message: Message): void {
    switch (message.role) {
      case 'assistant':
        if (message.internal) return
        this.#startStep(message.id)
        this.#answer(message)
        for (const call of message.tool_calls ?? []) this.#call(call.id, call.function)
        return
      case 'tool': {
        const status = (message.data?.['status'] ?? 'ok') as ResultStatus
        this.#result(message.tool_call_id, { ...message, content: shownResult(message), status })
        return
      }
      case 'user':
        if (isSteering(message) && !message.internal) this.#steer(message)
    }
  }
}

/** Before these, the run has heard what it answers. */
function isOfAnswer(event: AgentEvent): boolean {
  switch (event.type) {
    case 'step_started':
      return event.stepType === 'inference'
    case 'stream_chunk':
    case 'assistant_message':
    case 'tool_call':
    case 'tool_result':
    case 'approval_requested':
      return true
    default:
      return false
  }
}
