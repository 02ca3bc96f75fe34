import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AssistantMessage } from '../../machines/agent/messages.js'
import { getMessageIdOfStep, parseMessageNumber } from '../../machines/agent/step-id.js'
import { toJson } from '../core/base/to-json.js'
import { type CallNames, reasoningId, withMedia } from './messages.js'
import type { Mark, Page } from './page.js'
import type { AGUIMessage, AGUIPart } from './protocol.js'

type KnownResult = Pick<EventOf<'tool_result'>, 'callId' | 'content' | 'media' | 'status'>

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

/** Whose words they are: the agent's own, or those of one of its sub-agents. */
export interface Whose {
  /** The id of the sub-agent's run. */
  subagentRunId?: string
  /** What the ids of its messages begin with: each session counts its own from one. */
  messages: string
  /** What the ids of its calls begin with. */
  calls: string
}

/** What one agent says and does, on the page: its texts, its thoughts, its calls and their results, its steps. */
export class Speaker {
  readonly #page: Page
  readonly #whose: Whose
  readonly #names: CallNames
  /** Steps that have begun, and not ended. */
  readonly #steps = new Set<string>()
  /** What it is saying, and nobody has accepted yet. */
  readonly #unaccepted = new Set<string>()
  /** Where the result of a call goes, by the call's own id. */
  readonly #results = new Map<string, string>()
  readonly #open = new Map<string, string>()

  constructor(page: Page, whose: Whose, names: CallNames) {
    this.#page = page
    this.#whose = whose
    this.#names = names
  }

  /** What the page calls a call. */
  nameOf(callId: string): string {
    return `${this.#whose.calls}${this.#names.latest(callId)}`
  }

  /** What the id of a question about a call begins with. */
  askingOf(callId: string): string {
    return this.#names.asking(callId)
  }

  /** The calls that have been told and have no result, by their own ids. */
  get openCalls(): readonly string[] {
    return [...this.#open.keys()]
  }

  /** A message that the page begins with. */
  remember(message: AssistantMessage): void {
    for (const { id } of message.tool_calls ?? []) this.#names.name(id, message.id)
    this.#expectResults(message)
  }

  hear(event: AgentEvent): void {
    switch (event.type) {
      case 'step_started':
        return this.#startStep(event)
      case 'step_completed':
        return this.#finishStep(event)
      case 'stream_chunk':
        return this.#chunk(event)
      case 'assistant_message':
        return this.#accept(event)
      case 'tool_call':
        return this.#call(event)
      case 'tool_progress':
        return this.#progress(event)
      case 'tool_result':
        return this.#result(event)
    }
  }

  /** It says no more: what it was at is closed, and words that nobody has accepted are taken back. */
  end(at: number): void {
    const mark = this.#mark(at)
    for (const id of this.#unaccepted) {
      this.#page.close(id, mark)
      this.#page.close(reasoningId(id), mark)
    }
    this.#page.restate(
      [...this.#unaccepted].flatMap((id) => [id, reasoningId(id)]),
      [],
      mark,
    )
    this.#unaccepted.clear()
    for (const stepName of this.#steps) this.#page.tell({ ...mark, type: 'STEP_FINISHED', stepName })
    this.#steps.clear()
  }

  #startStep(event: EventOf<'step_started'>): void {
    const { stepType, stepId, at } = event
    if ((stepType !== 'inference' && stepType !== 'hosted') || this.#steps.has(stepId)) return
    this.#steps.add(stepId)
    const what = stepType === 'hosted' ? { name: event.name } : { attempt: event.attempt }
    const metadata = { statewright: { stepType, ...what } }
    this.#page.tell({ ...this.#mark(at), type: 'STEP_STARTED', stepName: stepId, metadata })
  }

  #finishStep({ stepId, outcome, at }: EventOf<'step_completed'>): void {
    if (!this.#steps.delete(stepId)) return
    const metadata = { statewright: { outcome } }
    this.#page.tell({ ...this.#mark(at), type: 'STEP_FINISHED', stepName: stepId, metadata })
  }

  #chunk({ stepId, text, reasoning = '', reset, finished, at }: EventOf<'stream_chunk'>): void {
    const [id, mark] = [this.#idOf(getMessageIdOfStep(stepId)), this.#mark(at)]
    if (reset) {
      this.#page.close(id, mark)
      this.#page.close(reasoningId(id), mark)
      this.#page.restate([id, reasoningId(id)], [], mark)
      this.#unaccepted.delete(id)
    }
    if (reasoning !== '' || text !== '') this.#unaccepted.add(id)
    if (reasoning !== '') this.#page.think(reasoningId(id), reasoning, mark)
    if (text !== '') {
      this.#page.close(reasoningId(id), mark)
      this.#page.write(id, text, mark)
    }
    if (!finished) return
    this.#page.close(reasoningId(id), mark)
    this.#page.close(id, mark)
  }

  /** The words are what the transcript has: what is missing on the page is added, what differs is told anew. */
  #accept({ message, at }: EventOf<'assistant_message'>): void {
    const [id, mark] = [this.#idOf(message.id), this.#mark(at)]
    this.#unaccepted.delete(id)
    this.#expectResults(message)
    this.#settle(reasoningId(id), 'reasoning', message.reasoning ?? '', mark)
    this.#settle(id, 'assistant', message.content || message.refusal || '', mark)
    const { media, annotations } = message
    for (const [name, value] of Object.entries({ media, annotations })) {
      if (value) this.#tell(name, { messageId: id, [name]: toJson(value) }, mark)
    }
  }

  #settle(id: string, role: 'assistant' | 'reasoning', text: string, mark: Mark): void {
    this.#page.close(id, mark)
    const shown = this.#page.textOf(id)
    if (shown === text) return
    if (!text.startsWith(shown)) {
      const whole: AGUIMessage = { id, role, content: text, ...this.#owner }
      this.#page.restate([id], text === '' ? [] : [whole], mark)
    } else if (role === 'assistant') this.#page.add(id, role, text.slice(shown.length), mark)
    else {
      this.#page.think(id, text.slice(shown.length), mark)
      this.#page.close(id, mark)
    }
  }

  /** A call's result stands in the transcript right after the message, in the order of the calls. */
  #expectResults({ id, tool_calls: calls = [] }: AssistantMessage): void {
    const number = parseMessageNumber(id)
    for (const [i, call] of calls.entries()) {
      this.#results.set(call.id, number === null ? `${id}.${i}` : `m${number + 1 + i}`)
    }
  }

  #call({ stepId, call, at }: EventOf<'tool_call'>): void {
    const messageId = getMessageIdOfStep(stepId)
    this.#names.name(call.id, messageId)
    const name = this.nameOf(call.id)
    this.#open.set(call.id, name)
    this.#page.call(this.#idOf(messageId), name, call.function, this.#mark(at))
  }

  #progress({ callId, name, progress, at }: EventOf<'tool_progress'>): void {
    this.#tell(
      'tool_progress',
      { toolCallId: this.nameOf(callId), name, progress: toJson(progress) },
      this.#mark(at),
    )
  }

  /** A result that stands in no message yet, and has been told before. */
  knowResult(result: KnownResult): { messageId: string; toolCallId: string; content: string | AGUIPart[] } {
    const { callId, content, media, status } = result
    this.#open.delete(callId)
    const toolCallId = this.nameOf(callId)
    const place = this.#results.get(callId)
    const id = place === undefined ? `${toolCallId}.result` : this.#idOf(place)
    const shown = withMedia(content, media)
    const error = status === 'ok' ? {} : { error: content }
    this.#page.know({ id, role: 'tool', toolCallId, content: shown, ...error, ...this.#owner })
    return { messageId: id, toolCallId, content: shown }
  }

  #result(event: EventOf<'tool_result'>): void {
    const { status, durationMs, truncated, at } = event
    const metadata = { statewright: { status, durationMs, ...(truncated && { truncated }) } }
    const known = this.knowResult(event)
    this.#page.tell({ ...this.#mark(at), type: 'TOOL_CALL_RESULT', ...known, role: 'tool', metadata })
  }

  #tell(name: string, value: Parameters<typeof toJson>[0], mark: Mark): void {
    this.#page.tell({ ...mark, type: 'CUSTOM', name: `statewright.${name}`, value: toJson(value) })
  }

  #idOf(messageId: string): string {
    return `${this.#whose.messages}${messageId}`
  }

  #mark(timestamp: number): Mark {
    return { timestamp, ...this.#owner }
  }

  get #owner(): { subagentRunId?: string } {
    const { subagentRunId } = this.#whose
    return subagentRunId === undefined ? {} : { subagentRunId }
  }
}
