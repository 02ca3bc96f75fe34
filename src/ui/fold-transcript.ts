import { omitUndefined } from '../../guards/lib/json.js'
import { joinTextParts } from '../core/base/text.js'
import { expectArgument, objectRule } from '../core/base/values.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { MediaPart, UserMessage } from '../../machines/agent/messages.js'
import type { AgentState, Elicitation, UnansweredCall, Reason } from '../../machines/agent/run-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { isOfCall } from '../web/approval-id.js'

/**
 * The state of a run for display: immutable plain JSON.
 *
 * @example
 * const events: AgentEvent[] = []
 * for await (const event of run) events.push(event)
 * const shown: Transcript = foldTranscript(undefined, events)
 * console.log(shown.items, shown.state)
 */
export interface Transcript {
  state: AgentState
  reason: Reason | null
  items: readonly TranscriptItem[]
  /** Calls that wait for approval, and elicitations from tool servers. Send the call back with the answer. */
  questions: readonly (UnansweredCall & { elicitation?: Elicitation })[]
  /** The tokens of the run so far, and the cost in USD. */
  usage?: { totalTokens: number; cost: number | null }
  /** Why the run failed, as a sentence. */
  error?: string
  /** When a sleeping run continues, in milliseconds since the epoch. */
  wakeAt?: number
  /** The number of calls with streaming arguments. Absent if there are none. */
  openCalls?: number
}

export type TranscriptItem =
  | { type: 'user'; id: string; text: string; content: UserMessage['content'] }
  /** `isOpen` is true while more text follows. */
  | { type: 'assistant'; id: string; text: string; reasoning: string; isOpen: boolean; media?: MediaPart[] }
  | CallItem
  /** The end of a run that did not answer in full. `text` is the error, if there is one. */
  | { type: 'end'; id: string; state: AgentState; reason: Reason; text?: string }

type CallItem = {
  type: 'call'
  id: string
  name: string
  /** The arguments as JSON text. */
  arguments: string
  status: 'called' | ResultStatus
  isOpen?: true
  result?: string
  media?: MediaPart[]
  progress?: unknown
  child?: Transcript
}

const emptyTranscript: Transcript = { state: 'RUNNING', reason: null, items: [], questions: [] }

/**
 * Adds an event, or several in order, to a transcript, or to undefined at the start. Streamed text accumulates, and a
 * retry removes the text of the failed attempt. Works with `reduce` and `useReducer`, and in browsers. Each call copies
 * the list of items once, so pass many events together.
 *
 * @example
 * let shown: Transcript | undefined
 * run.events$.subscribe((event) => {
 *   shown = foldTranscript(shown, event)
 *   console.log(shown.items.length, shown.state)
 * })
 */
export function foldTranscript(
  before: Transcript = emptyTranscript,
  event: AgentEvent | readonly AgentEvent[],
): Transcript {
  const beforeRule = objectRule(['items'], 'the transcript so far, or undefined')
  expectArgument('foldTranscript(before)', before, beforeRule)
  const addEvent = createFolder()
  return [event].flat().reduce((shown, one) => {
    expectArgument('foldTranscript(before, event)', one, objectRule(['type'], 'an event of a run'))
    return addEvent(shown, one)
  }, before)
}

function createFolder(): (before: Transcript, event: AgentEvent) => Transcript {
  /** The lists that this folder has made. Only it knows them until it returns, so it may change them. */
  const owned = new WeakSet<readonly TranscriptItem[]>()

  function addEvent(before: Transcript, event: AgentEvent): Transcript {
    switch (event.type) {
      case 'state_changed': {
        const { to: state, reason, wakeAt } = event
        const { wakeAt: _before, ...rest } = before
        const questions = state === 'WAITING_FOR_INPUT' ? before.questions : []
        return { ...withdrawCalls(rest, () => true), state, reason, questions, ...omitUndefined({ wakeAt }) }
      }
      case 'user_message': {
        const { id, content } = event.message
        const at = before.items.findLastIndex((item) => item.type === 'user' && item.id === id)
        return putItem(before, at, { type: 'user', id, text: joinTextParts(content), content })
      }
      case 'stream_chunk': {
        const current = event.reset ? withdrawCalls(before, () => true) : before
        return updateAnswer(current, event.stepId, ({ text, reasoning }) => ({
          text: (event.reset ? '' : text) + event.text,
          reasoning: (event.reset ? '' : reasoning) + (event.reasoning ?? ''),
          isOpen: !event.finished,
        }))
      }
      case 'assistant_message': {
        const { content, refusal = '', reasoning = '', media } = event.message
        const answer = { text: content || refusal, reasoning, isOpen: false, ...omitUndefined({ media }) }
        const ids = (event.message.tool_calls ?? []).map(({ id }) => id)
        const current = withdrawCalls(before, ({ id }) => !ids.includes(id))
        return updateAnswer(current, event.stepId, () => answer)
      }
      case 'tool_call_delta':
        return addCallDelta(before, event)
      case 'tool_call': {
        const { id, function: request } = event.call
        const call: CallItem = { type: 'call', id, ...request, status: 'called' }
        const at = findOpenCall(before, id)
        const called = putItem(before, at, call)
        return at < 0 ? called : setOpenCalls(called, (before.openCalls ?? 0) - 1)
      }
      case 'tool_progress':
        return updateCall(before, event.callId, { progress: event.progress })
      case 'tool_result': {
        const { callId, status, content: result, media } = event
        const questions = before.questions.filter((question) => !isOfCall(question.callId, callId))
        return updateCall({ ...before, questions }, callId, { status, result, ...(media && { media }) })
      }
      case 'child_event': {
        // The last call on a sub-agent's path, because providers reuse ids.
        const isOnPath = (item: TranscriptItem) => item.type === 'call' && isOfCall(event.callId, item.id)
        const call = before.items.findLast(isOnPath) as CallItem | undefined
        if (!call) return before
        const child = addEvent(call.child ?? emptyTranscript, event.event)
        return updateCall(before, call.id, { child })
      }
      case 'approval_requested':
      case 'elicitation_requested': {
        const { id: _i, runId: _r, seq: _s, at: _a, type: _t, ...question } = event
        const others = before.questions.filter(({ callId }) => callId !== question.callId)
        return { ...before, questions: [...others, question as UnansweredCall] }
      }
      case 'usage': {
        const { totalTokens, cost } = event.run
        return { ...before, usage: { totalTokens, cost } }
      }
      case 'error':
        return { ...before, error: event.message }
      case 'run_started': {
        const { error: _error, ...rest } = before
        return rest
      }
      case 'run_ended': {
        const { runId: id, state, reason } = event
        if (reason === 'end_turn') return before
        const end = { type: 'end' as const, id, state, reason, ...omitUndefined({ text: before.error }) }
        return putItem(before, -1, end)
      }
      default:
        return before
    }
  }

  /**
   * Changes the answer of a step. An answer that ends without content is removed. Only the last answer can belong to the
   * step, because steps follow each other.
   */
  function updateAnswer(
    before: Transcript,
    id: string,
    change: (item: AnswerItem) => Partial<AnswerItem>,
  ): Transcript {
    const last = before.items.findLastIndex(({ type }) => type === 'assistant')
    const item = before.items[last]
    const isKnown = item?.type === 'assistant' && item.id === id
    const answer: AnswerItem = isKnown
      ? item
      : { type: 'assistant', id, text: '', reasoning: '', isOpen: true }
    const changed = { ...answer, ...change(answer) }
    const isEmpty = !changed.isOpen && changed.text + changed.reasoning === '' && !changed.media
    return putItem(before, isKnown ? last : -1, isEmpty ? null : changed)
  }

  /** Replaces or removes the item at an index. -1 stands for an item that is not in the transcript yet. */
  function putItem(before: Transcript, at: number, item: TranscriptItem | null): Transcript {
    if (item === null && at < 0) return before
    const items = owned.has(before.items) ? (before.items as TranscriptItem[]) : [...before.items]
    owned.add(items)
    if (item === null) items.splice(at, 1)
    else items[at < 0 ? items.length : at] = item
    return { ...before, items }
  }

  function updateCall(before: Transcript, callId: string, change: Partial<CallItem>): Transcript {
    const at = before.items.findLastIndex((item) => item.type === 'call' && item.id === callId)
    const call = before.items[at]
    return call?.type === 'call' ? putItem(before, at, { ...call, ...change }) : before
  }

  function addCallDelta(
    before: Transcript,
    { callId: id, name, delta }: Extract<AgentEvent, { type: 'tool_call_delta' }>,
  ): Transcript {
    const { items, openCalls = 0 } = before
    const at = findOpenCall(before, id)
    const call = items[at]
    if (call?.type === 'call') return putItem(before, at, { ...call, arguments: call.arguments + delta })
    const added: CallItem = { type: 'call', id, name, arguments: delta, status: 'called', isOpen: true }
    return { ...putItem(before, -1, added), openCalls: openCalls + 1 }
  }

  /** Removes calls with streaming arguments. They are near the end, so the search starts there. */
  function withdrawCalls(before: Transcript, matches: (call: CallItem) => boolean): Transcript {
    if (before.openCalls === undefined) return before
    let shown = before
    let unread = before.openCalls
    for (let at = before.items.length - 1; unread > 0 && at >= 0; at -= 1) {
      const item = shown.items[at]
      if (!item || !isOpenCall(item)) continue
      unread -= 1
      if (matches(item)) shown = setOpenCalls(putItem(shown, at, null), (shown.openCalls ?? 0) - 1)
    }
    return shown
  }

  return addEvent
}

type AnswerItem = Extract<TranscriptItem, { type: 'assistant' }>

/** Skips the search through a long transcript if no arguments stream. */
function findOpenCall({ items, openCalls }: Transcript, id: string): number {
  return openCalls === undefined ? -1 : items.findLastIndex((item) => isOpenCall(item) && item.id === id)
}

function setOpenCalls({ openCalls: _before, ...rest }: Transcript, count: number): Transcript {
  return count > 0 ? { ...rest, openCalls: count } : rest
}

function isOpenCall(item: TranscriptItem): item is CallItem {
  return item.type === 'call' && item.isOpen === true
}
