import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Json } from '../../machines/agent/json.js'
import type { Message } from '../../machines/agent/messages.js'
import {
  type AgentState,
  type PendingCall,
  type Reason,
  type RunResult,
  isRestState,
  isWorkState,
} from '../../machines/agent/run-result.js'
import { unclearedInput } from '../../machines/agent/screening.js'
import { toJson } from '../core/base/to-json.js'
import { approvalInterrupt, interruptId, pauseId, pauseInterrupt } from './interrupts.js'
import type { Turn } from '../web/turn.js'
import { CallNames, shownMessage } from './messages.js'
import { showsAll } from './own-names.js'
import { type Mark, Page } from './page.js'
import {
  type AGUIEvent,
  type AGUIInterrupt,
  type AGUIMessage,
  type AGUIUsage,
  protocolVersion,
} from './protocol.js'
import { Speaker } from './speaker.js'
import { Team } from './team.js'

/** Where the events of one run of AG-UI begin. */
export interface FoldStart {
  threadId: string
  runId: string
  /** What was said before the first event: the transcript as it stands then. */
  history: readonly Message[]
  /** Whether the page is to be told all of it, whatever it has. */
  restate?: boolean
  /** What the page shows: it is told all of it where that is something else. Absent: it shows what it should. */
  shown?: readonly { id: string; role: string; subagentRunId?: string }[]
  /** How the run stands before the first event, where it has begun. */
  stands?: Pick<Turn, 'state' | 'reason' | 'error' | 'pending' | 'settled'>
  /** What the page calls a message of the transcript, where that is not its own id. */
  idOf?: (message: Message) => string
  /** Whether the page has a state that a member can be added to. */
  state?: boolean
}

/** How a run stands that tells no more: as far as it is known. */
export interface Standing extends Partial<Pick<RunResult, 'pending' | 'object' | 'messages'>> {
  state: AgentState
  reason: Reason | null
  error?: { message: string; code: string } | null
}

/**
 * Events of a run as events of AG-UI: what `begin`, each `hear` and `end` return is told in this order, and is one whole
 * run of that protocol. Pure: it knows nothing but what it hears.
 */
export class Fold {
  readonly #start: FoldStart
  readonly #page: Page
  readonly #lead: Speaker
  readonly #team: Team
  readonly #usage: AGUIUsage = {
    inputTokens: 0,
    outputTokens: 0,
    totalTokens: 0,
    reasoningTokens: 0,
    cachedInputTokens: 0,
  }
  readonly #asked = new Map<string, PendingCall>()
  #state: AgentState = 'RUNNING'
  #reason: Reason | null = null
  #at = 0
  #error: { message: string; code: string } | null = null

  constructor(start: FoldStart) {
    this.#start = start
    const names = new CallNames()
    // What no shield has looked at yet is told when one has.
    const heard = start.history.filter(({ content }) => content !== unclearedInput)
    this.#page = new Page(heard.flatMap((message) => this.#named(message, names)))
    this.#lead = new Speaker(this.#page, { messages: '', calls: '' }, names)
    for (const message of start.history) if (message.role === 'assistant') this.#lead.remember(message)
    this.#team = new Team(this.#page, this.#lead)
    this.#at = start.history.at(-1)?.createdAt ?? 0
    const { stands } = start
    if (!stands) return
    this.#state = stands.state
    this.#reason = stands.reason
    this.#error = stands.error
    for (const call of stands.pending) if (call.needs === 'approval') this.#asked.set(call.callId, call)
    for (const result of stands.settled) this.#lead.knowResult(result)
  }

  begin(): AGUIEvent[] {
    const { threadId, runId, restate, shown, stands } = this.#start
    this.#page.tell({ type: 'RUN_STARTED', threadId, runId, protocolVersion })
    if (restate || (shown && !showsAll(this.#page.all, shown))) this.#page.restateAll()
    if (stands) this.#tellState()
    return this.#page.takeNews()
  }

  hear(event: AgentEvent): AGUIEvent[] {
    this.#at = event.at
    this.#take(event)
    return this.#page.takeNews()
  }

  /** How the events themselves say that the run stands. */
  get standing(): Standing {
    const waits = this.#state === 'WAITING_FOR_INPUT'
    const pending = waits ? [...this.#asked.values(), ...this.#clientCalls()] : []
    return { state: this.#state, reason: this.#reason, pending, error: this.#error }
  }

  /** The run rests, or has ended. */
  end(standing: Standing = this.standing): AGUIEvent[] {
    const { state, reason, pending = [], error, object } = standing
    const { interrupts, asks } = this.#interrupts(standing)
    this.#team.end(this.#at, asks)
    this.#lead.end(this.#at)
    if (isWorkState(state)) return this.fail(goesOnElsewhere)
    if (state === 'ERROR')
      return this.fail(error ?? this.#error ?? { message: 'The run failed.', code: reason ?? 'internal' })
    const isOver = !isRestState(state)
    if (isOver && state !== 'COMPLETED' && state !== 'CANCELLED') {
      const { message = '', code = reason ?? '' } = error ?? this.#error ?? {}
      this.#custom('halt', { state, reason, code, message })
    }
    const waiting = pending
      .filter(({ needs }) => needs === 'client')
      .map(({ callId }) => this.#team.nameOf(callId))
    const { threadId, runId } = this.#start
    this.#page.tell({
      ...this.#mark,
      type: 'RUN_FINISHED',
      threadId,
      runId,
      outcome:
        interrupts.length > 0
          ? { type: 'interrupt', interrupts }
          : isOver && state !== 'COMPLETED'
            ? { type: 'cancelled' }
            : { type: 'success', ...(waiting.length > 0 && { pendingToolCallIds: waiting }) },
      result: { state, reason, ...(object !== undefined && { object: toJson(object) }) },
      ...this.#used(),
    })
    return this.#page.takeNews()
  }

  /** The run was refused, or failed. */
  fail({ message, code }: { message: string; code: string }): AGUIEvent[] {
    this.#page.tell({ ...this.#mark, type: 'RUN_ERROR', message, code, ...this.#used() })
    return this.#page.takeNews()
  }

  #take(event: AgentEvent): void {
    switch (event.type) {
      case 'state_changed':
        return this.#stand(event)
      case 'user_message':
        return this.#userSays(event.message)
      case 'child_event':
        return this.#team.hear(event)
      case 'tool_result':
        this.#team.settle(event.callId, event.at)
        for (const id of this.#asked.keys()) if (belongsTo(id, event.callId)) this.#asked.delete(id)
        return this.#lead.hear(event)
      case 'approval_requested': {
        const { type: _type, id: _id, runId: _runId, seq: _seq, at: _at, ...call } = event
        this.#asked.set(event.callId, { ...call, needs: 'approval' } as PendingCall)
        return
      }
      case 'usage':
        for (const key of Object.keys(this.#usage) as (keyof AGUIUsage)[]) this.#usage[key] += event.step[key]
        return
      case 'error':
        this.#error = { message: event.message, code: event.code }
        return
      case 'retry':
        return this.#custom('retry', { attempt: event.attempt, delayMs: event.delayMs, code: event.code })
      case 'guardrail': {
        const { guard, action, rule, message } = event
        return this.#custom('guardrail', { guard, action, message, ...(rule !== undefined && { rule }) })
      }
      case 'budget_warning': {
        const { message, remainingTokens, remainingCost } = event
        return this.#custom('budget', { message, remainingTokens, remainingCost })
      }
      case 'context_fitted': {
        const { strategy, before, after, dropped } = event
        return this.#custom('context', { strategy, before, after, dropped })
      }
      case 'shield': {
        const { point, shield, action, message, callId } = event
        const at = callId === undefined ? {} : { toolCallId: this.#team.nameOf(callId) }
        return this.#custom('shield', { point, shield, action, message, ...at })
      }
      case 'memory':
        return this.#custom('memory', {
          sources: event.snippets.map(({ source, score }) => ({
            source,
            ...(score !== undefined && { score }),
          })),
        })
      case 'warning':
        return this.#custom('warning', { code: event.code })
      default:
        this.#lead.hear(event)
    }
  }

  #stand({ to, reason }: Extract<AgentEvent, { type: 'state_changed' }>): void {
    this.#state = to
    this.#reason = reason
    if (to !== 'WAITING_FOR_INPUT' && to !== 'WAITING_FOR_TOOL') this.#asked.clear()
    this.#tellState()
  }

  #tellState(): void {
    if (this.#start.state === false) return
    const value = { state: this.#state, reason: this.#reason }
    const delta = [{ op: 'add' as const, path: '/statewright', value }]
    this.#page.tell({ ...(this.#at > 0 && this.#mark), type: 'STATE_DELTA', delta })
  }

  /** Who asked has his own words on the page already; what comes from elsewhere is shown. */
  #userSays(message: Message & { role: 'user' }): void {
    const [shown] = this.#named(message, new CallNames())
    if (shown?.role !== 'user' || this.#page.has(shown.id)) return
    const isSteering = message.data?.['reason'] === 'steering'
    if (isSteering) this.#custom('steering', { messageId: shown.id, text: toJson(message.content) })
    if (isSteering && typeof shown.content === 'string')
      this.#page.add(shown.id, 'user', shown.content, this.#mark)
    else this.#page.know(shown)
  }

  /** Calls that wait for the client tell of themselves by having no result where nobody is asked. */
  *#clientCalls(): Iterable<PendingCall> {
    const asked = [...this.#asked.keys()]
    for (const callId of this.#lead.openCalls) {
      if (asked.some((id) => belongsTo(id, callId))) continue
      yield { callId, name: '' as never, arguments: '', fingerprint: '', needs: 'client' }
    }
  }

  #interrupts({ state, reason, pending = [], error, messages = [] }: Standing): {
    interrupts: AGUIInterrupt[]
    asks: Map<string, string[]>
  } {
    const asks = new Map<string, string[]>()
    if (state === 'PAUSED') {
      const id = pauseId(messages.length)
      return { interrupts: [pauseInterrupt(id, reason ?? 'paused', error?.message)], asks }
    }
    const interrupts = pending
      .filter(({ needs }) => needs === 'approval')
      .map((call) => {
        const owner = this.#team.ownerOf(call.callId)
        const id = interruptId(this.#lead.askingOf(call.callId), call)
        const interrupt = approvalInterrupt(id, call, this.#team.nameOf(call.callId), owner)
        if (owner !== undefined) asks.set(owner, [...(asks.get(owner) ?? []), interrupt.id])
        return interrupt
      })
    return { interrupts, asks }
  }

  #named(message: Message, names: CallNames): AGUIMessage[] {
    const { idOf } = this.#start
    const shown = shownMessage(message, names)
    if (!idOf || message.role !== 'user') return shown
    return shown.map((one) => (one.id === message.id ? { ...one, id: idOf(message) } : one))
  }

  #used(): { usage?: AGUIUsage[] } {
    return this.#usage.totalTokens > 0 ? { usage: [{ ...this.#usage }] } : {}
  }

  #custom(name: string, value: Json): void {
    this.#page.tell({ ...this.#mark, type: 'CUSTOM', name: `statewright.${name}`, value })
  }

  get #mark(): Mark {
    return { timestamp: this.#at }
  }
}

const goesOnElsewhere = {
  code: 'session_busy',
  message: 'The run goes on where nobody hears of it: ask again.',
}

/** Whether a question is about a call, or comes from below it. */
function belongsTo(questionId: string, callId: string): boolean {
  return questionId === callId || questionId.startsWith(`${callId}/`)
}
