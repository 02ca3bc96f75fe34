import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Json } from '../../machines/agent/json.js'
import type { Message } from '../../machines/agent/messages.js'
import {
  type AgentState,
  type PendingCall,
  type Reason,
  type RunResult,
  type TurnEnd,
  isRestState,
  isWorkState,
} from '../../machines/agent/run-result.js'
import { unclearedInput } from '../../machines/agent/screening.js'
import { toJson } from '../core/base/json.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { createCallInterrupt, toInterruptId, toPauseId, createPauseInterrupt } from './approval-interrupts.js'
import { isOfCall } from '../web/approval-id.js'
import type { Turn } from '../web/chat-turn.js'
import { isTurnOpening } from '../core/sessions/find-turn.js'
import { getSentence } from '../web/exposure.js'
import { CallNames, getUserMessageId, hasAllMessages, toAGUIEnds, toPageMessages } from './agui-messages.js'
import { type Mark, PageMessages } from './page-messages.js'
import {
  type AGUIEnd,
  type AGUIEvent,
  type AGUIInterrupt,
  type AGUIMessage,
  type AGUIUsage,
  protocolVersion,
} from './protocol.js'
import { AgentOutput, PageSubAgents } from './agent-output.js'

interface FoldStart {
  threadId: string
  runId: string
  history: readonly Message[]
  /** The end of each earlier run that did not answer in full. */
  ends?: readonly TurnEnd[]
  /** Whether to always send a snapshot. */
  restate?: boolean
  /** The messages on the page. Absent if the page is up to date. A snapshot is sent if the messages differ. */
  shown?: readonly { id: string; role: string; subagentRunId?: string }[]
  /** The state of the run before the first event, if it has started. */
  status?: Pick<Turn, 'state' | 'reason' | 'error' | 'pending' | 'settled' | 'wakeAt'>
  /** Returns the page's id for a message, if the page uses different ids. */
  getMessageId?: (message: Message) => string
  /** Whether the page's state is an object to which `/statewright` can be added. */
  state?: boolean
}

/** The known state of a run when it rests or ends. */
export interface RunStatus extends Partial<Pick<RunResult, 'pending' | 'object' | 'messages'>> {
  state: AgentState
  reason: Reason | null
  error?: { message: string; code: string } | null
  wakeAt?: number | null
}

/** Converts a run's events. `begin`, each `handleEvent` and `end` together return one complete AG-UI run. */
export class AGUIEventFold {
  readonly #start: FoldStart
  readonly #page: PageMessages
  readonly #lead: AgentOutput
  readonly #subAgents: PageSubAgents
  readonly #usage: AGUIUsage = {
    inputTokens: 0,
    outputTokens: 0,
    totalTokens: 0,
    reasoningTokens: 0,
    cachedInputTokens: 0,
  }
  readonly #requests = new Map<string, PendingCall>()
  #state: AgentState = 'RUNNING'
  #reason: Reason | null = null
  #wakeAt: number | null = null
  #at = 0
  readonly #ends: AGUIEnd[]
  /** The page's id for the user message that the run answers. */
  #openingId: string | undefined
  #error: { message: string; code: string } | null = null

  constructor(start: FoldStart) {
    this.#start = start
    const names = new CallNames()
    // Input that is pending review is sent once the shields have cleared it.
    const cleared = start.history.filter(({ content }) => content !== unclearedInput)
    this.#page = new PageMessages(cleared.flatMap((message) => this.#toPageMessages(message, names)))
    this.#lead = new AgentOutput(this.#page, { messages: '', calls: '' }, names)
    for (const message of start.history) if (message.role === 'assistant') this.#lead.rememberMessage(message)
    this.#subAgents = new PageSubAgents(this.#page, this.#lead)
    this.#at = start.history.at(-1)?.createdAt ?? 0
    const { history, ends = [], getMessageId = getUserMessageId } = start
    this.#ends = toAGUIEnds(ends, history, getMessageId)
    const opening = history.findLast(isTurnOpening)
    this.#openingId = opening && getMessageId(opening)
    const { status } = start
    if (!status) return
    this.#state = status.state
    this.#reason = status.reason
    this.#error = status.error
    for (const call of status.pending) if (call.needs !== 'client') this.#requests.set(call.callId, call)
    for (const result of status.settled) this.#lead.rememberResult(result)
  }

  begin(): AGUIEvent[] {
    const { threadId, runId, restate, shown, status } = this.#start
    this.#page.emit({ type: 'RUN_STARTED', threadId, runId, protocolVersion })
    if (restate || (shown && !hasAllMessages(this.#page.all, shown))) this.#page.emitSnapshot()
    if (status || this.#ends.length > 0) this.#emitState()
    return this.#page.takeEvents()
  }

  handleEvent(event: AgentEvent): AGUIEvent[] {
    this.#at = event.at
    this.#encodeEvent(event)
    return this.#page.takeEvents()
  }

  /** The status of the run, derived only from its events. */
  get status(): RunStatus {
    const waits = this.#state === 'WAITING_FOR_INPUT'
    const pending = waits ? [...this.#requests.values(), ...this.#listClientCalls()] : []
    return { state: this.#state, reason: this.#reason, pending, error: this.#error, wakeAt: this.#wakeAt }
  }

  /** Ends the AG-UI run, because the run rests or has ended. */
  end(status: RunStatus = this.status): AGUIEvent[] {
    const { state, reason, pending = [], error, object } = status
    const { interrupts, idsByOwner } = this.#createInterrupts(status)
    this.#subAgents.end(this.#at, idsByOwner)
    this.#lead.end(this.#at)
    if (isWorkState(state)) return this.fail(remoteRunFailure)
    this.#addEnd(status)
    if (state === 'ERROR')
      return this.fail(error ?? this.#error ?? { message: 'The run failed.', code: reason ?? 'internal' })
    const isOver = !isRestState(state)
    if (isOver && state !== 'COMPLETED' && state !== 'CANCELLED') {
      const { message = '', code = reason ?? '' } = error ?? this.#error ?? {}
      this.#emitCustom('halt', { state, reason, code, message })
    }
    const pendingToolCallIds = pending
      .filter(({ needs }) => needs === 'client')
      .map(({ callId }) => this.#subAgents.getCallName(callId))
    const { threadId, runId } = this.#start
    const success = { type: 'success' as const, ...(pendingToolCallIds.length > 0 && { pendingToolCallIds }) }
    const ended = isOver && state !== 'COMPLETED' ? { type: 'cancelled' as const } : success
    this.#page.emit({
      ...this.#mark,
      type: 'RUN_FINISHED',
      threadId,
      runId,
      outcome: interrupts.length > 0 ? { type: 'interrupt', interrupts } : ended,
      result: { state, reason, ...(object !== undefined && { object: toJson(object) }) },
      ...this.#getUsage(),
    })
    return this.#page.takeEvents()
  }

  fail({ message, code }: { message: string; code: string }): AGUIEvent[] {
    this.#page.emit({ ...this.#mark, type: 'RUN_ERROR', message, code, ...this.#getUsage() })
    return this.#page.takeEvents()
  }

  #encodeEvent(event: AgentEvent): void {
    switch (event.type) {
      case 'state_changed':
        return this.#changeState(event)
      case 'user_message':
        return this.#handleUserMessage(event.message)
      case 'child_event':
        return this.#subAgents.handleEvent(event)
      case 'tool_result':
        this.#subAgents.closeCall(event.callId, event.at)
        for (const id of this.#requests.keys()) if (isOfCall(id, event.callId)) this.#requests.delete(id)
        return this.#lead.handleEvent(event)
      case 'approval_requested':
      case 'elicitation_requested': {
        const { type, id: _id, runId: _runId, seq: _seq, at: _at, ...call } = event
        const needs = type === 'approval_requested' ? 'approval' : 'elicitation'
        this.#requests.set(event.callId, { ...call, needs } as PendingCall)
        return
      }
      case 'usage':
        for (const key of Object.keys(this.#usage) as (keyof AGUIUsage)[]) this.#usage[key] += event.step[key]
        return
      case 'error':
        this.#error = { message: event.message, code: event.code }
        return
      case 'retry':
        return this.#emitCustom('retry', { attempt: event.attempt, delayMs: event.delayMs, code: event.code })
      case 'guardrail': {
        const { guard, action, rule, message } = event
        return this.#emitCustom('guardrail', { guard, action, message, ...(rule !== undefined && { rule }) })
      }
      case 'budget_warning': {
        const { message, remainingTokens, remainingCost } = event
        return this.#emitCustom('budget', { message, remainingTokens, remainingCost })
      }
      case 'tools_loaded':
        return this.#emitCustom('tools', { loaded: [...event.names] })
      case 'handed_off':
        return this.#emitCustom('handoff', { from: event.from, to: event.to })
      case 'context_fitted': {
        const { strategy, before, after, dropped } = event
        return this.#emitCustom('context', { strategy, before, after, dropped })
      }
      case 'shield': {
        const { point, shield, action, message, callId } = event
        const at = callId === undefined ? {} : { toolCallId: this.#subAgents.getCallName(callId) }
        return this.#emitCustom('shield', { point, shield, action, message, ...at })
      }
      case 'memory': {
        const sources = event.snippets.map(({ source, score }) => ({ source, ...omitUndefined({ score }) }))
        return this.#emitCustom('memory', { sources })
      }
      case 'waiting_for_slot':
        return
      case 'warning':
        return this.#emitCustom('warning', { code: event.code })
      default:
        this.#lead.handleEvent(event)
    }
  }

  #changeState({ to, reason, wakeAt }: Extract<AgentEvent, { type: 'state_changed' }>): void {
    this.#state = to
    this.#reason = reason
    this.#wakeAt = wakeAt ?? null
    if (to !== 'WAITING_FOR_INPUT' && to !== 'WAITING_FOR_TOOL') this.#requests.clear()
    this.#emitState()
  }

  #addEnd({ state, reason, error }: RunStatus): void {
    const messageId = this.#openingId
    if (isRestState(state) || reason === null || reason === 'end_turn' || messageId === undefined) return
    if (this.#ends.some((end) => end.messageId === messageId)) return
    const { code = reason, message = getSentence(reason) } = error ?? this.#error ?? {}
    this.#ends.push({ messageId, state, reason, code, message })
    this.#emitState()
  }

  #emitState(): void {
    if (this.#start.state === false) return
    const sleep = this.#wakeAt === null ? {} : { wakeAt: this.#wakeAt }
    const ends = this.#ends.length === 0 ? {} : { ends: this.#ends.map((end) => ({ ...end })) }
    const value = { state: this.#state, reason: this.#reason, ...sleep, ...ends }
    const delta = [{ op: 'add' as const, path: '/statewright', value }]
    this.#page.emit({ ...(this.#at > 0 && this.#mark), type: 'STATE_DELTA', delta })
  }

  /** Sends the message to pages other than its sender, which already shows it. */
  #handleUserMessage(message: Message & { role: 'user' }): void {
    const [shown] = this.#toPageMessages(message, new CallNames())
    if (shown && isTurnOpening(message)) this.#openingId = shown.id
    if (shown?.role !== 'user' || this.#page.has(shown.id)) return
    const isSteering = message.data?.['reason'] === 'steering'
    if (isSteering) this.#emitCustom('steering', { messageId: shown.id, text: toJson(message.content) })
    if (isSteering && typeof shown.content === 'string')
      this.#page.addText(shown.id, 'user', shown.content, this.#mark)
    else this.#page.remember(shown)
  }

  *#listClientCalls(): Iterable<PendingCall> {
    const requested = [...this.#requests.keys()]
    for (const callId of this.#lead.openCalls) {
      if (requested.some((id) => isOfCall(id, callId))) continue
      yield { callId, name: '' as never, arguments: '', fingerprint: '', needs: 'client' }
    }
  }

  #createInterrupts({ state, reason, pending = [], error, messages = [], wakeAt = null }: RunStatus): {
    interrupts: AGUIInterrupt[]
    idsByOwner: Map<string, string[]>
  } {
    const idsByOwner = new Map<string, string[]>()
    if (state === 'PAUSED') {
      const details = { reason: reason ?? 'paused', message: error?.message, wakeAt }
      return { interrupts: [createPauseInterrupt(toPauseId(messages.length), details)], idsByOwner }
    }
    const interrupts = pending
      .filter(({ needs }) => needs !== 'client')
      .map((call) => {
        const owner = this.#subAgents.findOwner(call.callId)
        const id = toInterruptId(this.#lead.getRequestName(call.callId), call)
        const interrupt = createCallInterrupt(id, call, this.#subAgents.getCallName(call.callId), owner)
        if (owner !== undefined) idsByOwner.set(owner, [...(idsByOwner.get(owner) ?? []), interrupt.id])
        return interrupt
      })
    return { interrupts, idsByOwner }
  }

  #toPageMessages(message: Message, names: CallNames): AGUIMessage[] {
    const { getMessageId } = this.#start
    const shown = toPageMessages(message, names)
    if (!getMessageId || message.role !== 'user') return shown
    return shown.map((part) => (part.id === message.id ? { ...part, id: getMessageId(message) } : part))
  }

  #getUsage(): { usage?: AGUIUsage[] } {
    return this.#usage.totalTokens > 0 ? { usage: [{ ...this.#usage }] } : {}
  }

  #emitCustom(name: string, value: Json): void {
    this.#page.emitCustom(name, value, this.#mark)
  }

  get #mark(): Mark {
    return { timestamp: this.#at }
  }
}

const remoteRunFailure = {
  code: 'session_busy',
  message: 'The run continues in another process. Reconnect to it.',
}
