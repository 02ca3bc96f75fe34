import type { AgentContext } from '../../../../machines/agent/context.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { isUnderWay } from '../../../../machines/agent/call-state.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'
import { listUnclearedInput } from '../../../../machines/agent/mask-uncleared.js'
import type { Usage } from '../../../../machines/agent/usage.js'
import {
  type AgentInvariant,
  listAnnounced,
  listAskedCalls,
  hasBegunStep,
  type Change,
  listOpenCalls,
  createRule,
  hasStarted,
} from './invariant-rule.js'
import { expectArgument, listRule } from '../../../core/base/values.js'

export const transcriptRules: readonly AgentInvariant[] = [
  createRule(
    'at rest, each call has one result, in call order, or is waiting for an answer',
    ({ isRest, after }) => {
      return isRest && findHistoryProblem(after.messages, listOpenCalls(after.calls))
    },
  ),
  createRule('only a run waiting for input, or paused with its sub-agents, has open calls', (change) => {
    const { isRest, after } = change
    const isPaused = after.state === 'PAUSED' && /^(paused|sleeping)$/.test(after.reason ?? '')
    const open = listOpenCalls(after.calls.filter(({ needs }) => !(isPaused && needs === 'child')))
    return isRest && after.state !== 'WAITING_FOR_INPUT' && open.length > 0 && `open: ${open.join(', ')}`
  }),
  createRule('every request has a valid history', (change) => {
    return hasStarted(change, 'requestModel') && findHistoryProblem(change.after.messages)
  }),
  createRule('an accepted response counts as one step, is in the transcript and is announced', (change) => {
    const { event, before, after } = change
    if (event.type !== 'xstate.done.actor.model' && event.type !== 'xstate.done.actor.conclusion') return null
    const { text, refusal, toolCalls } = event.output.response
    const isEmpty = text === '' && refusal === null && toolCalls.length === 0
    const message = after.messages[before?.messages.length ?? 0]
    if (after.steps !== (before?.steps ?? 0) + 1)
      return `the number of steps changed from ${before?.steps} to ${after.steps}`
    if (listAnnounced(change, 'usage').length !== 1) return 'the usage was not announced'
    if (isEmpty) return null
    if (message?.role !== 'assistant') return 'the response is not in the transcript'
    // An answer pending review is announced when it is cleared.
    const times = after.unemittedStep === null ? 1 : 0
    return (
      listAnnounced(change, 'assistant_message').length !== times &&
      'the response was not announced exactly once'
    )
  }),
  createRule('the usage of answered, failed and stopped requests and of sub-agents is counted', (change) => {
    const { before, after } = change
    if (before === undefined) return null
    const owed = before.usage.session.totalTokens + (getCost(change)?.totalTokens ?? 0)
    const isRight =
      after.usage.session.totalTokens === owed &&
      after.usage.session.totalTokens - before.usage.session.totalTokens ===
        after.usage.run.totalTokens - before.usage.run.totalTokens
    return !isRight && `the session should have ${owed} tokens, but has ${after.usage.session.totalTokens}`
  }),
  createRule('the partial text of a stopped answer is kept and marked', (change) => {
    const text = getPartialText(change)
    // A final answer is not requested again, so its partial text is kept even if the run pauses.
    const isLast = change.isFinal || change.event.type === 'xstate.error.actor.conclusion'
    if (text === '' || !isLast) return null
    const last = change.after.messages.at(-1)
    return (
      !(last?.role === 'assistant' && last.content === text && last.data?.['partial'] === true) &&
      'the partial text is lost'
    )
  }),
  createRule('user messages are announced once they are in the transcript and reviewed', (change) => {
    const { before, after } = change
    const joined = after.messages.slice(before?.messages.length ?? 0).filter(isFromUser).length
    const waited = before ? listUnclearedInput(before).length : 0
    const announced = listAnnounced(change, 'user_message').length
    const expected = joined + waited - listUnclearedInput(after).length
    return (
      announced !== expected &&
      `${joined} messages were added, and ${announced} of ${expected} were announced`
    )
  }),
  createRule('user input is delivered by the next request', (change) => {
    const { before, after, event } = change
    const isDelivered = change.isFinal || listUserInput(change).every((input) => isKept(input, after))
    if (!isDelivered) return `the input of ${event.type} is lost`
    if (hasBegunStep(change) && after.inbox.length > 0) return 'the inbox still holds messages'
    if (hasBegunStep(change) && after.steering.length > 0) return 'a steering message was not delivered'
    return before === undefined && !after.messages.some(isFromUser) && 'the input is lost'
  }),
  createRule('trimmed messages stay out of later requests', ({ event, after }) => {
    if (event.type !== 'xstate.done.actor.fitting') return null
    return (
      JSON.stringify(after.fit) !== JSON.stringify(event.output.fit) && 'a trimmed message is in the request'
    )
  }),
  createRule('each call gets exactly one result event', (change) => {
    const open = new Set(listUnannounced(change.after.calls))
    const closed = [...listUnannounced(change.before?.calls), ...listAskedCalls(change)].filter(
      (id) => !open.has(id),
    )
    const announced = listAnnounced(change, 'tool_result').map(({ callId }) => callId)
    return (
      closed.sort().join() !== announced.sort().join() &&
      `results closed: ${closed.join()}; results announced: ${announced.join()}`
    )
  }),
]

function listUnannounced(calls: readonly BatchCall[] = []): string[] {
  return calls
    .filter((call) => call.result === undefined || call.unscreenedResult || call.unscreenedArguments)
    .map(({ id }) => id)
}

/** The user input in this event. A reply that no run waits for contains none. */
function listUserInput({ event, transitions }: Change): unknown[] {
  if (event.type === 'STEER') return [event.text]
  return event.type === 'REPLY' && transitions.length > 0 ? event.messages.map(({ content }) => content) : []
}

function isKept(input: unknown, { steering, messages }: AgentContext): boolean {
  return steering.some((text) => text === input) || messages.some(({ content }) => content === input)
}

function isFromUser({ role, ...message }: Message): boolean {
  return role === 'user' && !('internal' in message)
}

function getCost({ event, transitions, before }: Change): Usage | null {
  if (event.type === 'xstate.done.actor.model' || event.type === 'xstate.done.actor.conclusion')
    return event.output.response.usage
  if (event.type === 'xstate.error.actor.model' || event.type === 'xstate.error.actor.conclusion')
    return event.error.usage
  if (event.type === 'xstate.done.actor.fitting') return event.output.usage
  const isTaken = transitions.length > 0
  if (event.type === 'CHILD_USAGE') {
    const isRunning = before?.calls.some((call) => call.id === event.callId && isUnderWay(call))
    return isRunning ? event.usage : null
  }
  if (event.type === 'RELEASED') return (isTaken && event.usage) || null
  if (event.type === 'TOOL_RESULT') return (isTaken && event.usage) || null
  return isTaken && 'partial' in event ? (event.partial?.usage ?? null) : null
}

function getPartialText({ event }: Change): string {
  if (event.type === 'xstate.error.actor.model' || event.type === 'xstate.error.actor.conclusion') {
    return event.error.partialText
  }
  return 'partial' in event ? (event.partial?.text ?? '') : ''
}

/**
 * Checks that, as every provider requires, each call of an assistant message has exactly one result right after it,
 * in call order, and no result stands alone. `open` lists the calls of the last batch that may still wait.
 * Returns null if the history is valid.
 *
 * @example expect(findHistoryProblem((await agent.run('Go.').result).messages)).toBeNull()
 */
export function findHistoryProblem(
  messages: readonly Message[],
  open: readonly string[] = [],
): string | null {
  expectArgument('findHistoryProblem(messages)', messages, listRule('a list of messages'))
  const last = messages.findLastIndex((message) => message.role === 'assistant' && message.tool_calls)
  let expected: string[] = []
  for (const [i, message] of messages.entries()) {
    if (message.role === 'tool') {
      // Waiting calls leave gaps, but later results are still in call order.
      while (expected.length > 0 && expected[0] !== message.tool_call_id && mayWait(expected[0], i))
        expected.shift()
      const next = expected.shift()
      if (next !== message.tool_call_id)
        return `message ${i}: the result of '${message.tool_call_id}' has no call or is out of order`
      continue
    }
    const missing = expected.find((id) => !mayWait(id, i))
    if (missing !== undefined) return `message ${i}: call '${missing}' has no result before it`
    expected = message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : []
  }
  const missing = expected.find((id) => !open.includes(id))
  if (missing !== undefined) return `call '${missing}' has no result`
  const ids = messages.map(({ id }) => id)
  return new Set(ids).size === ids.length ? null : `several messages have the same id: ${ids.join(', ')}`

  function mayWait(id: string | undefined, at: number): boolean {
    return at > last && id !== undefined && open.includes(id)
  }
}
