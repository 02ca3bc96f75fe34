import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AssistantMessage } from '../../machines/agent/messages.js'
import { getMessageIdOfStep, parseMessageNumber } from '../../machines/agent/step-id.js'
import { toJson } from '../core/base/to-json.js'
import { type CallNames, toReasoningId, joinMedia } from './agui-messages.js'
import type { Mark, PageMessages } from './page-messages.js'
import type { AGUIMessage, AGUIPart } from './protocol.js'

type KnownResult = Pick<EventOf<'tool_result'>, 'callId' | 'content' | 'media' | 'status'>

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

/** Whose words they are: the agent's own, or those of one of its sub-agents. */
export interface AgentPrefix {
  /** The id of the sub-agent's run. */
  subagentRunId?: string
  /** What the ids of its messages begin with: each session counts its own from one. */
  messages: string
  /** What the ids of its calls begin with. */
  calls: string
}

/** What one agent says and does, on the page: its texts, its thoughts, its calls and their results, its steps. */
export class AgentOutput {
  readonly #page: PageMessages
  readonly #prefix: AgentPrefix
  readonly #names: CallNames
  /** Steps that have begun, and not ended. */
  readonly #steps = new Set<string>()
  /** What it is saying, and nobody has accepted yet. */
  readonly #unaccepted = new Set<string>()
  /** Where the result of a call goes, by the call's own id. */
  readonly #results = new Map<string, string>()
  readonly #open = new Map<string, string>()

  constructor(page: PageMessages, prefix: AgentPrefix, names: CallNames) {
    this.#page = page
    this.#prefix = prefix
    this.#names = names
  }

  /** What the page calls a call. */
  getCallName(callId: string): string {
    return `${this.#prefix.calls}${this.#names.getLatestName(callId)}`
  }

  /** What the id of a question about a call begins with. */
  getQuestionName(callId: string): string {
    return this.#names.getQuestionName(callId)
  }

  /** The calls that have been told and have no result, by their own ids. */
  get openCalls(): readonly string[] {
    return [...this.#open.keys()]
  }

  /** A message that the page begins with. */
  rememberMessage(message: AssistantMessage): void {
    for (const { id } of message.tool_calls ?? []) this.#names.nameCall(id, message.id)
    this.#expectResults(message)
  }

  handleEvent(event: AgentEvent): void {
    switch (event.type) {
      case 'step_started':
        return this.#startStep(event)
      case 'step_completed':
        return this.#finishStep(event)
      case 'stream_chunk':
        return this.#writeChunk(event)
      case 'assistant_message':
        return this.#acceptMessage(event)
      case 'tool_call':
        return this.#writeCall(event)
      case 'tool_progress':
        return this.#emitProgress(event)
      case 'tool_result':
        return this.#writeResult(event)
    }
  }

  /** It says no more: what it was at is closed, and words that nobody has accepted are taken back. */
  end(at: number): void {
    const mark = this.#createMark(at)
    for (const id of this.#unaccepted) {
      this.#page.closeText(id, mark)
      this.#page.closeText(toReasoningId(id), mark)
    }
    this.#page.replaceMessages(
      [...this.#unaccepted].flatMap((id) => [id, toReasoningId(id)]),
      [],
      mark,
    )
    this.#unaccepted.clear()
    for (const stepName of this.#steps) this.#page.emit({ ...mark, type: 'STEP_FINISHED', stepName })
    this.#steps.clear()
  }

  #startStep(event: EventOf<'step_started'>): void {
    const { stepType, stepId, at } = event
    if ((stepType !== 'inference' && stepType !== 'hosted') || this.#steps.has(stepId)) return
    this.#steps.add(stepId)
    const what = stepType === 'hosted' ? { name: event.name } : { attempt: event.attempt }
    const metadata = { statewright: { stepType, ...what } }
    this.#page.emit({ ...this.#createMark(at), type: 'STEP_STARTED', stepName: stepId, metadata })
  }

  #finishStep({ stepId, outcome, at }: EventOf<'step_completed'>): void {
    if (!this.#steps.delete(stepId)) return
    const metadata = { statewright: { outcome } }
    this.#page.emit({ ...this.#createMark(at), type: 'STEP_FINISHED', stepName: stepId, metadata })
  }

  #writeChunk({ stepId, text, reasoning = '', reset, finished, at }: EventOf<'stream_chunk'>): void {
    const [id, mark] = [this.#toMessageId(getMessageIdOfStep(stepId)), this.#createMark(at)]
    if (reset) {
      this.#page.closeText(id, mark)
      this.#page.closeText(toReasoningId(id), mark)
      this.#page.replaceMessages([id, toReasoningId(id)], [], mark)
      this.#unaccepted.delete(id)
    }
    if (reasoning !== '' || text !== '') this.#unaccepted.add(id)
    if (reasoning !== '') this.#page.writeReasoning(toReasoningId(id), reasoning, mark)
    if (text !== '') {
      this.#page.closeText(toReasoningId(id), mark)
      this.#page.writeText(id, text, mark)
    }
    if (!finished) return
    this.#page.closeText(toReasoningId(id), mark)
    this.#page.closeText(id, mark)
  }

  /** The words are what the transcript has: what is missing on the page is added, what differs is told anew. */
  #acceptMessage({ message, at }: EventOf<'assistant_message'>): void {
    const [id, mark] = [this.#toMessageId(message.id), this.#createMark(at)]
    this.#unaccepted.delete(id)
    this.#expectResults(message)
    this.#settleText(toReasoningId(id), 'reasoning', message.reasoning ?? '', mark)
    this.#settleText(id, 'assistant', message.content || message.refusal || '', mark)
    const { media, annotations } = message
    for (const [name, value] of Object.entries({ media, annotations })) {
      if (value) this.#emitCustom(name, { messageId: id, [name]: toJson(value) }, mark)
    }
  }

  #settleText(id: string, role: 'assistant' | 'reasoning', text: string, mark: Mark): void {
    this.#page.closeText(id, mark)
    const shown = this.#page.getText(id)
    if (shown === text) return
    if (!text.startsWith(shown)) {
      const whole: AGUIMessage = { id, role, content: text, ...this.#owner }
      this.#page.replaceMessages([id], text === '' ? [] : [whole], mark)
    } else if (role === 'assistant') this.#page.addText(id, role, text.slice(shown.length), mark)
    else {
      this.#page.writeReasoning(id, text.slice(shown.length), mark)
      this.#page.closeText(id, mark)
    }
  }

  /** A call's result stands in the transcript right after the message, in the order of the calls. */
  #expectResults({ id, tool_calls: calls = [] }: AssistantMessage): void {
    const number = parseMessageNumber(id)
    for (const [i, call] of calls.entries()) {
      this.#results.set(call.id, number === null ? `${id}.${i}` : `m${number + 1 + i}`)
    }
  }

  #writeCall({ stepId, call, at }: EventOf<'tool_call'>): void {
    const messageId = getMessageIdOfStep(stepId)
    this.#names.nameCall(call.id, messageId)
    const name = this.getCallName(call.id)
    this.#open.set(call.id, name)
    this.#page.writeCall(this.#toMessageId(messageId), name, call.function, this.#createMark(at))
  }

  #emitProgress({ callId, name, progress, at }: EventOf<'tool_progress'>): void {
    this.#emitCustom(
      'tool_progress',
      { toolCallId: this.getCallName(callId), name, progress: toJson(progress) },
      this.#createMark(at),
    )
  }

  /** A result that stands in no message yet, and has been told before. */
  rememberResult(result: KnownResult): {
    messageId: string
    toolCallId: string
    content: string | AGUIPart[]
  } {
    const { callId, content, media, status } = result
    this.#open.delete(callId)
    const toolCallId = this.getCallName(callId)
    const place = this.#results.get(callId)
    const id = place === undefined ? `${toolCallId}.result` : this.#toMessageId(place)
    const shown = joinMedia(content, media)
    const error = status === 'ok' ? {} : { error: content }
    this.#page.remember({ id, role: 'tool', toolCallId, content: shown, ...error, ...this.#owner })
    return { messageId: id, toolCallId, content: shown }
  }

  #writeResult(event: EventOf<'tool_result'>): void {
    const { status, durationMs, truncated, at } = event
    const metadata = { statewright: { status, durationMs, ...(truncated && { truncated }) } }
    const known = this.rememberResult(event)
    this.#page.emit({ ...this.#createMark(at), type: 'TOOL_CALL_RESULT', ...known, role: 'tool', metadata })
  }

  #emitCustom(name: string, value: Parameters<typeof toJson>[0], mark: Mark): void {
    this.#page.emit({ ...mark, type: 'CUSTOM', name: `statewright.${name}`, value: toJson(value) })
  }

  #toMessageId(messageId: string): string {
    return `${this.#prefix.messages}${messageId}`
  }

  #createMark(timestamp: number): Mark {
    return { timestamp, ...this.#owner }
  }

  get #owner(): { subagentRunId?: string } {
    const { subagentRunId } = this.#prefix
    return subagentRunId === undefined ? {} : { subagentRunId }
  }
}
