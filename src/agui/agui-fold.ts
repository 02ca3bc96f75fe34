import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { JsonObject } from '../../machines/agent/json.js'
import type { Message } from '../../machines/agent/messages.js'
import { type PendingCall, type TurnEnd, isRestState, isWorkState } from '../../machines/agent/run-result.js'
import { unclearedInput } from '../../machines/agent/screening.js'
import { toJson } from '../core/base/json.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { listInterrupts, type RunStatus } from './approval-interrupts.js'
import { isOfCall } from '../web/approval-id.js'
import type { Turn } from '../web/chat-turn.js'
import { isTurnOpening } from '../core/sessions/find-turn.js'
import { getSentence } from '../web/exposure.js'
import {
  type CallNames,
  createCallNames,
  getUserMessageId,
  hasAllMessages,
  toAGUIEnds,
  toPageMessages,
} from './agui-messages.js'
import { createPageMessages } from './page-messages.js'
import { type AGUIEvent, type AGUIMessage, type AGUIUsage, protocolVersion } from './protocol.js'
import { createAgentOutput, createSubAgents } from './agent-output.js'

type Failure = { message: string; code: string }

interface FoldStart {
  threadId: string
  runId: string
  history: readonly Message[]
  /** The end of each earlier run that did not answer in full. */
  ends?: readonly TurnEnd[]
  /**
   * The messages on the page, or null for none. Absent if the page is up to date. A snapshot is sent if the messages
   * differ.
   */
  shown?: readonly { id: string; role: string; subagentRunId?: string }[] | null
  /** The state of the run before the first event, if it has started. */
  status?: Pick<Turn, 'state' | 'reason' | 'error' | 'pending' | 'settled' | 'wakeAt'>
  /** Returns the page's id for a message, if the page uses different ids. */
  getMessageId?: (message: Message) => string
  /** Whether the page's state is an object to which `/statewright` can be added. */
  state?: boolean
}

/** The custom events that contain fields of an agent's event. A field without a value is left out. */
const customEvents: {
  [Type in AgentEvent['type']]?: readonly [
    name: string,
    ...keys: (keyof Extract<AgentEvent, { type: Type }>)[],
  ]
} = {
  retry: ['retry', 'attempt', 'delayMs', 'code'],
  guardrail: ['guardrail', 'guard', 'action', 'message', 'rule'],
  budget_warning: ['budget', 'message', 'remainingTokens', 'remainingCost'],
  handed_off: ['handoff', 'from', 'to'],
  context_fitted: ['context', 'strategy', 'before', 'after', 'dropped'],
  warning: ['warning', 'code'],
}

/** Converts a run's events. `begin`, each `handleEvent` and `end` together return one complete AG-UI run. */
export function createAGUIFold(start: FoldStart) {
  const { threadId, runId, history, shown, status: startStatus, getMessageId = getUserMessageId } = start
  const names = createCallNames()
  // Input that is pending review is sent once the shields have cleared it.
  const cleared = history.filter(({ content }) => content !== unclearedInput)
  const page = createPageMessages(cleared.flatMap((message) => listShown(message, names)))
  const lead = createAgentOutput(page, { messages: '', calls: '' }, names)
  for (const message of history) if (message.role === 'assistant') lead.rememberMessage(message)
  const subAgents = createSubAgents(page, lead)
  const usage: AGUIUsage = {
    inputTokens: 0,
    outputTokens: 0,
    totalTokens: 0,
    reasoningTokens: 0,
    cachedInputTokens: 0,
  }
  const requests = new Map<string, PendingCall>()
  const ends = toAGUIEnds(start.ends ?? [], history, getMessageId)
  let {
    state,
    reason,
    error,
    wakeAt,
  }: Pick<Turn, 'state' | 'reason' | 'wakeAt'> & { error: Failure | null } = startStatus ?? {
    state: 'RUNNING',
    reason: null,
    error: null,
    wakeAt: null,
  }
  let timestamp = history.at(-1)?.createdAt ?? 0
  const opening = history.findLast(isTurnOpening)
  let openingId = opening && getMessageId(opening)
  if (startStatus) {
    const { pending, settled } = startStatus
    for (const call of pending) if (call.needs !== 'client') requests.set(call.callId, call)
    for (const result of settled) lead.rememberResult(result)
  }

  function listShown(message: Message, callNames: CallNames): AGUIMessage[] {
    const parts = toPageMessages(message, callNames)
    if (!start.getMessageId || message.role !== 'user') return parts
    return parts.map((part) => (part.id === message.id ? { ...part, id: getMessageId(message) } : part))
  }

  function encodeEvent(event: AgentEvent): void {
    switch (event.type) {
      case 'state_changed':
        ;({ to: state, reason, wakeAt = null } = event)
        if (state !== 'WAITING_FOR_INPUT' && state !== 'WAITING_FOR_TOOL') requests.clear()
        return emitState()
      case 'user_message':
        return handleUserMessage(event.message)
      case 'child_event':
        return subAgents.handleEvent(event)
      case 'tool_result':
        subAgents.closeCall(event.callId, event.at)
        for (const id of requests.keys()) if (isOfCall(id, event.callId)) requests.delete(id)
        return lead.handleEvent(event)
      case 'approval_requested':
      case 'elicitation_requested': {
        const { type, id: _id, runId: _runId, seq: _seq, at: _at, ...call } = event
        const needs = type === 'approval_requested' ? 'approval' : 'elicitation'
        requests.set(event.callId, { ...call, needs } as PendingCall)
        return
      }
      case 'usage':
        for (const key of Object.keys(usage) as (keyof AGUIUsage)[]) usage[key] += event.step[key]
        return
      case 'error':
        error = { message: event.message, code: event.code }
        return
      case 'tools_loaded':
        return page.writeCustom('tools', { loaded: [...event.names] })
      case 'shield': {
        const { point, shield, action, message, callId } = event
        const at = callId === undefined ? {} : { toolCallId: subAgents.getCallName(callId) }
        return page.writeCustom('shield', { point, shield, action, message, ...at })
      }
      case 'memory': {
        const sources = event.snippets.map(({ source, score }) => ({ source, ...omitUndefined({ score }) }))
        return page.writeCustom('memory', { sources })
      }
      case 'waiting_for_slot':
        return
      default: {
        const [name, ...keys] = customEvents[event.type] ?? []
        if (name === undefined) return lead.handleEvent(event)
        const fields = keys.map((key) => [key, event[key as keyof AgentEvent]])
        page.writeCustom(name, omitUndefined(Object.fromEntries(fields) as JsonObject) as JsonObject)
      }
    }
  }

  function addEnd(rest: RunStatus): void {
    const messageId = openingId
    const { state: endState, reason: endReason } = rest
    if (isRestState(endState) || endReason === null || endReason === 'end_turn' || messageId === undefined)
      return
    if (ends.some((end) => end.messageId === messageId)) return
    const { code = endReason, message = getSentence(endReason) } = rest.error ?? error ?? {}
    ends.push({ messageId, state: endState, reason: endReason, code, message })
    emitState()
  }

  function emitState(): void {
    if (start.state === false) return
    const sleep = wakeAt === null || state !== 'PAUSED' ? {} : { wakeAt }
    const shownEnds = ends.length === 0 ? {} : { ends: ends.map((end) => ({ ...end })) }
    const delta = [
      { op: 'add' as const, path: '/statewright', value: { state, reason, ...sleep, ...shownEnds } },
    ]
    page.emit({ ...(timestamp > 0 && { timestamp }), type: 'STATE_DELTA', delta })
  }

  /** Sends the message to pages other than its sender, which already shows it. */
  function handleUserMessage(message: Message & { role: 'user' }): void {
    const [part] = listShown(message, createCallNames())
    if (part && isTurnOpening(message)) openingId = part.id
    if (part?.role !== 'user' || page.has(part.id)) return
    const isSteering = message.data?.['reason'] === 'steering'
    if (isSteering) page.writeCustom('steering', { messageId: part.id, text: toJson(message.content) })
    if (isSteering && typeof part.content === 'string') page.addText(part.id, 'user', part.content)
    else page.remember(part)
  }

  function listClientCalls(): PendingCall[] {
    const requested = [...requests.keys()]
    const own = [...lead.openCalls].filter((callId) => !requested.some((id) => isOfCall(id, callId)))
    const call = { name: '' as never, arguments: '', fingerprint: '', needs: 'client' as const }
    return own.map((callId) => ({ ...call, callId }))
  }

  const getUsage = (): { usage?: AGUIUsage[] } => (usage.totalTokens > 0 ? { usage: [{ ...usage }] } : {})

  function getStatus(): RunStatus {
    const pending = state === 'WAITING_FOR_INPUT' ? [...requests.values(), ...listClientCalls()] : []
    return { state, reason, pending, error, wakeAt }
  }

  function fail({ message, code }: Failure): AGUIEvent[] {
    page.emit({ timestamp, type: 'RUN_ERROR', message, code, ...getUsage() })
    return page.takeEvents()
  }

  return {
    fail,
    /** The status of the run, derived only from its events. */
    getStatus,

    begin(): AGUIEvent[] {
      page.emit({ type: 'RUN_STARTED', threadId, runId, protocolVersion })
      const messages = page.listAll()
      if (shown === null || (shown && !hasAllMessages(messages, shown)))
        page.emit({ type: 'MESSAGES_SNAPSHOT', messages })
      if (startStatus || ends.length > 0) emitState()
      return page.takeEvents()
    },

    handleEvent(event: AgentEvent): AGUIEvent[] {
      timestamp = event.at
      page.setMark(timestamp)
      encodeEvent(event)
      return page.takeEvents()
    },

    end(rest: RunStatus = getStatus()): AGUIEvent[] {
      const { state: endState, reason: endReason, pending = [], object } = rest
      const interrupts = listInterrupts(rest, names, subAgents)
      subAgents.end(timestamp, interrupts)
      lead.end(timestamp)
      if (isWorkState(endState)) {
        const message = 'The run continues in another process. Reconnect to it.'
        return fail({ code: 'session_busy', message })
      }
      addEnd(rest)
      const failure = rest.error ?? error
      if (endState === 'ERROR')
        return fail(failure ?? { message: 'The run failed.', code: endReason ?? 'internal' })
      const isOver = !isRestState(endState)
      if (isOver && endState !== 'COMPLETED' && endState !== 'CANCELLED') {
        const { message = '', code = endReason ?? '' } = failure ?? {}
        page.writeCustom('halt', { state: endState, reason: endReason, code, message })
      }
      const pendingToolCallIds = pending
        .filter(({ needs }) => needs === 'client')
        .map(({ callId }) => subAgents.getCallName(callId))
      const success = {
        type: 'success' as const,
        ...(pendingToolCallIds.length > 0 && { pendingToolCallIds }),
      }
      const ended = isOver && endState !== 'COMPLETED' ? { type: 'cancelled' as const } : success
      page.emit({
        timestamp,
        type: 'RUN_FINISHED',
        threadId,
        runId,
        outcome: interrupts.length > 0 ? { type: 'interrupt', interrupts } : ended,
        result: {
          state: endState,
          reason: endReason,
          ...(object !== undefined && { object: toJson(object) }),
        },
        ...getUsage(),
      })
      return page.takeEvents()
    },
  }
}
