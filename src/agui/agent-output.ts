import type { AgentEvent } from '../../machines/agent/announcements.js'
import {
  type AssistantMessage,
  getMessageIdOfStep,
  parseMessageNumber,
} from '../../machines/agent/messages.js'
import { isRestState } from '../../machines/agent/run-result.js'
import { toJson } from '../core/base/json.js'
import { isOfCall } from '../web/approval-id.js'
import { CallNames, joinMedia, toReasoningId } from './agui-messages.js'
import { type Mark, type PageMessages, toOwner } from './page-messages.js'
import type { AGUIMessage } from './protocol.js'

type KnownResult = Pick<EventOf<'tool_result'>, 'callId' | 'content' | 'media' | 'status'>

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

interface AgentPrefix {
  subagentRunId?: string
  /** The prefix of the agent's message ids, because each session numbers messages from one. */
  messages: string
  calls: string
}

/** Converts the events of one agent: text, reasoning, calls, results and steps. */
export class AgentOutput {
  readonly #page: PageMessages
  readonly #prefix: AgentPrefix
  readonly #names: CallNames
  readonly #steps = new Set<string>()
  /** Streamed messages that no final message has confirmed yet. */
  readonly #unconfirmed = new Set<string>()
  /** The message ids reserved for results, by call id. */
  readonly #results = new Map<string, string>()
  /** The page's names for open calls, by call id. */
  readonly #open = new Map<string, string>()

  constructor(page: PageMessages, prefix: AgentPrefix, names: CallNames) {
    this.#page = page
    this.#prefix = prefix
    this.#names = names
  }

  getCallName(callId: string): string {
    return `${this.#prefix.calls}${this.#names.getLatestName(callId)}`
  }

  /** The first part of a call's interrupt id. */
  getRequestName(callId: string): string {
    return this.#names.getRequestName(callId)
  }

  get openCalls(): readonly string[] {
    return [...this.#open.keys()]
  }

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
      case 'tool_call_delta':
        return this.#writeCallDelta(event)
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

  /** Closes open messages and steps, and removes unconfirmed messages. */
  end(at: number): void {
    const mark = this.#createMark(at)
    const ids = [...this.#unconfirmed]
    for (const id of ids) this.#page.closeMessage(id, toReasoningId(id), mark)
    const removed = ids.flatMap((id) => [id, toReasoningId(id)])
    this.#page.replaceMessages(removed, [], mark)
    this.#unconfirmed.clear()
    for (const stepName of this.#steps) this.#page.emit({ ...mark, type: 'STEP_FINISHED', stepName })
    this.#steps.clear()
  }

  #startStep(event: EventOf<'step_started'>): void {
    const { stepType, stepId, at } = event
    if ((stepType !== 'inference' && stepType !== 'hosted') || this.#steps.has(stepId)) return
    this.#steps.add(stepId)
    const details = stepType === 'hosted' ? { name: event.name } : { attempt: event.attempt }
    const metadata = { statewright: { stepType, ...details } }
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
      this.#page.closeMessage(id, toReasoningId(id), mark)
      this.#page.replaceMessages([id, toReasoningId(id)], [], mark)
      this.#unconfirmed.delete(id)
    }
    if (reasoning !== '' || text !== '') this.#unconfirmed.add(id)
    if (reasoning !== '') this.#page.writeReasoning(toReasoningId(id), reasoning, mark)
    if (text !== '') {
      this.#page.closeText(toReasoningId(id), mark)
      this.#page.writeText(id, text, mark)
    }
    if (!finished) return
    this.#page.closeText(toReasoningId(id), mark)
    this.#page.closeText(id, mark)
  }

  #writeCallDelta({ stepId, callId, name, delta, at }: EventOf<'tool_call_delta'>): void {
    const messageId = getMessageIdOfStep(stepId)
    const [id, mark] = [this.#toMessageId(messageId), this.#createMark(at)]
    this.#unconfirmed.add(id)
    this.#page.closeText(toReasoningId(id), mark)
    this.#page.closeText(id, mark)
    this.#names.nameCall(callId, messageId)
    this.#page.writeCallDelta(id, this.getCallName(callId), { name, delta }, mark)
  }

  /** Compares the page with the final message. Adds what is missing, and replaces what differs. */
  #acceptMessage({ message, at }: EventOf<'assistant_message'>): void {
    const [id, mark] = [this.#toMessageId(message.id), this.#createMark(at)]
    this.#unconfirmed.delete(id)
    this.#expectResults(message)
    const calls = message.tool_calls ?? []
    const names = calls.map((call) => `${this.#prefix.calls}${this.#names.nameCall(call.id, message.id)}`)
    this.#page.keepCalls(id, names, mark)
    this.#settleText(toReasoningId(id), 'reasoning', message.reasoning ?? '', mark)
    this.#settleText(id, 'assistant', message.content || message.refusal || '', mark)
    const { media, annotations } = message
    for (const [name, value] of Object.entries({ media, annotations }))
      if (value) this.#page.emitCustom(name, { messageId: id, [name]: toJson(value) }, mark)
  }

  #settleText(id: string, role: 'assistant' | 'reasoning', text: string, mark: Mark): void {
    this.#page.closeText(id, mark)
    const shown = this.#page.getText(id)
    if (shown === text) return
    if (!text.startsWith(shown)) {
      const calls = role === 'assistant' ? this.#page.getCalls(id) : []
      const isEmpty = text === '' && calls.length === 0
      const content = { id, content: text, ...this.#owner }
      const whole: AGUIMessage =
        role === 'assistant' && calls.length > 0
          ? { ...content, role, toolCalls: [...calls] }
          : { ...content, role }
      this.#page.replaceMessages([id], isEmpty ? [] : [whole], mark)
    } else if (role === 'assistant') this.#page.addText(id, role, text.slice(shown.length), mark)
    else {
      this.#page.writeReasoning(id, text.slice(shown.length), mark)
      this.#page.closeText(id, mark)
    }
  }

  /** Results follow their message in the transcript, in the order of the calls. */
  #expectResults({ id, tool_calls: calls = [] }: AssistantMessage): void {
    const number = parseMessageNumber(id)
    for (const [i, call] of calls.entries())
      this.#results.set(call.id, number === null ? `${id}.${i}` : `m${number + 1 + i}`)
  }

  #writeCall({ stepId, call, at }: EventOf<'tool_call'>): void {
    const messageId = getMessageIdOfStep(stepId)
    this.#names.nameCall(call.id, messageId)
    const name = this.getCallName(call.id)
    this.#open.set(call.id, name)
    this.#page.writeCall(this.#toMessageId(messageId), name, call.function, this.#createMark(at))
  }

  #emitProgress({ callId, name, progress, at }: EventOf<'tool_progress'>): void {
    const value = { toolCallId: this.getCallName(callId), name, progress: toJson(progress) }
    this.#page.emitCustom('tool_progress', value, this.#createMark(at))
  }

  /** Records a result that the page already has or is about to receive. */
  rememberResult(result: KnownResult) {
    const { callId, content, media, status } = result
    this.#open.delete(callId)
    const toolCallId = this.getCallName(callId)
    const messageId = this.#results.get(callId)
    const id = messageId === undefined ? `${toolCallId}.result` : this.#toMessageId(messageId)
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

  #toMessageId(messageId: string): string {
    return `${this.#prefix.messages}${messageId}`
  }

  #createMark(timestamp: number): Mark {
    return { timestamp, ...this.#owner }
  }

  get #owner(): { subagentRunId?: string } {
    return toOwner(this.#prefix)
  }
}

type ChildEvent = Extract<AgentEvent, { type: 'child_event' }>

interface SubAgent {
  id: string
  output: AgentOutput
  rests: boolean
  failure: { message: string; code: string } | null
}

/** The sub-agents of a run. Each one is announced with its first event, and closed once. */
export class PageSubAgents {
  readonly #page: PageMessages
  readonly #lead: AgentOutput
  /** The sub-agents by call id, in start order. */
  readonly #members = new Map<string, SubAgent>()
  readonly #closed = new Set<string>()

  constructor(page: PageMessages, lead: AgentOutput) {
    this.#page = page
    this.#lead = lead
  }

  handleEvent({ callId, path, event, at }: ChildEvent): void {
    if (this.#closed.has(event.runId)) return
    const member = this.#members.get(callId) ?? this.#announce(callId, path.at(-1) ?? '', event.runId, at)
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
        return this.#close(callId, at)
      default:
        member.output.handleEvent(event)
    }
  }

  getCallName(callId: string): string {
    const [above, member] = this.#findSubAgent(callId)
    return member ? member.output.getCallName(callId.slice(above.length + 1)) : this.#lead.getCallName(callId)
  }

  findOwner(callId: string): string | undefined {
    return this.#findSubAgent(callId)[1]?.id
  }

  closeCall(callId: string, at: number): void {
    this.#closeAll((id) => isOfCall(id, callId), at)
  }

  /** Closes all sub-agents. `interrupts` contains the interrupt ids of each sub-agent. */
  end(at: number, interrupts: ReadonlyMap<string, string[]>): void {
    this.#closeAll(() => true, at, interrupts)
  }

  #announce(callId: string, name: string, id: string, timestamp: number): SubAgent {
    const [, above] = this.#findSubAgent(callId)
    const parentToolCallId = this.getCallName(callId)
    const prefix = { subagentRunId: id, messages: `${id}.`, calls: `${parentToolCallId}/` }
    const output = new AgentOutput(this.#page, prefix, new CallNames())
    const member: SubAgent = { id, output, rests: false, failure: null }
    this.#members.set(callId, member)
    const parent = above && { parentSubagentRunId: above.id }
    const started = { subagentRunId: id, name, parentToolCallId, ...parent }
    this.#page.emit({ timestamp, type: 'SUBAGENT_STARTED', ...started })
    return member
  }

  /** Finds the innermost sub-agent of a call. Call ids may also contain slashes. */
  #findSubAgent(callId: string): [string, SubAgent | undefined] {
    let found: [string, SubAgent | undefined] = ['', undefined]
    for (const [id, member] of this.#members)
      if (callId.startsWith(`${id}/`) && id.length >= found[0].length) found = [id, member]
    return found
  }

  #closeAll(matches: (id: string) => boolean, at: number, interrupts?: ReadonlyMap<string, string[]>): void {
    for (const callId of [...this.#members.keys()].toReversed())
      if (matches(callId)) this.#close(callId, at, interrupts)
  }

  #close(callId: string, timestamp: number, interrupts?: ReadonlyMap<string, string[]>): void {
    const member = this.#members.get(callId)
    if (!member) return
    const { id: subagentRunId, output, rests, failure } = member
    output.end(timestamp)
    this.#members.delete(callId)
    this.#closed.add(subagentRunId)
    const mark = { timestamp, subagentRunId }
    if (failure) return this.#page.emit({ ...mark, type: 'SUBAGENT_ERROR', ...failure })
    const interruptIds = interrupts?.get(subagentRunId) ?? []
    const outcome =
      rests && interrupts ? ({ type: 'suspended', interruptIds } as const) : ({ type: 'success' } as const)
    this.#page.emit({ ...mark, type: 'SUBAGENT_FINISHED', outcome })
  }
}
