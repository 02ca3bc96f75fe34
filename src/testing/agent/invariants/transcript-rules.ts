import type { AgentContext } from '../../../../machines/agent/context.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { isUnderWay } from '../../../../machines/agent/call-state.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'
import { listUnclearedInput } from '../../../../machines/agent/mask-uncleared.js'
import type { Usage } from '../../../../machines/agent/usage.js'
import { type Change, createRules, isAnswer, isFailedRequest, listOpenCalls } from './invariant-rule.js'
import { expectArgument, listRule } from '../../../core/base/values.js'

export const transcriptRules = createRules({
  'at rest, each call has one result, in call order, or is waiting for an answer': ({ after, isRest }) =>
    isRest && findHistoryProblem(after.messages, listOpenCalls(after.calls)),
  'only a run waiting for input, or paused with its sub-agents, has open calls': ({ after, isRest }) => {
    const isPaused = after.state === 'PAUSED' && /^(paused|sleeping)$/.test(after.reason ?? '')
    const open = listOpenCalls(after.calls.filter(({ needs }) => !(isPaused && needs === 'child')))
    return isRest && after.state !== 'WAITING_FOR_INPUT' && open.length > 0 && `open: ${open.join(', ')}`
  },
  'every request has a valid history': ({ after, hasStarted }) =>
    hasStarted('requestModel') && findHistoryProblem(after.messages),
  'an accepted response counts as one step, is in the transcript and is announced': (change) => {
    const { event, before, after, listAnnounced } = change
    if (!isAnswer(event)) return null
    const { text, refusal, toolCalls } = event.output.response
    const isEmpty = text === '' && refusal === null && toolCalls.length === 0
    const message = after.messages[before?.messages.length ?? 0]
    if (after.steps !== (before?.steps ?? 0) + 1)
      return `the number of steps changed from ${before?.steps} to ${after.steps}`
    if (listAnnounced('usage').length !== 1) return 'the usage was not announced'
    if (isEmpty) return null
    if (message?.role !== 'assistant') return 'the response is not in the transcript'
    // An answer pending review is announced when it is cleared.
    const times = after.unemittedStep === null ? 1 : 0
    const isAnnounced = listAnnounced('assistant_message').length === times
    return !isAnnounced && 'the response was not announced exactly once'
  },
  'the usage of answered, failed and stopped requests and of sub-agents is counted': (change) => {
    const { before, after } = change
    if (before === undefined) return null
    const cost = getCost(change)?.totalTokens ?? 0
    const [owed, has] = [before.usage.session.totalTokens + cost, after.usage.session.totalTokens]
    const isRight = has === owed && after.usage.run.totalTokens - before.usage.run.totalTokens === cost
    return !isRight && `the session should have ${owed} tokens, but has ${has}`
  },
  'the partial text of a stopped answer is kept and marked': (change) => {
    const text = getPartialText(change)
    // A final answer is not requested again, so its partial text is kept even if the run pauses.
    const isLast = change.isFinal || change.event.type === 'xstate.error.actor.conclusion'
    if (text === '' || !isLast) return null
    const last = change.after.messages.at(-1)
    if (last?.role === 'assistant' && last.content === text && last.data?.['partial'] === true) return null
    return 'the partial text is lost'
  },
  'user messages are announced once they are in the transcript and reviewed': (change) => {
    const { before, after, listAnnounced } = change
    const joined = after.messages.slice(before?.messages.length ?? 0).filter(isFromUser).length
    const waited = before ? listUnclearedInput(before).length : 0
    const announced = listAnnounced('user_message').length
    const expected = joined + waited - listUnclearedInput(after).length
    if (announced === expected) return null
    return `${joined} messages were added, and ${announced} of ${expected} were announced`
  },
  'user input is delivered by the next request': (change) => {
    const { event, before, after, isFinal, hasBegunStep } = change
    const isDelivered = isFinal || listUserInput(change).every((input) => isKept(input, after))
    if (!isDelivered) return `the input of ${event.type} is lost`
    if (hasBegunStep() && after.inbox.length > 0) return 'the inbox still holds messages'
    if (hasBegunStep() && after.steering.length > 0) return 'a steering message was not delivered'
    return before === undefined && !after.messages.some(isFromUser) && 'the input is lost'
  },
  'trimmed messages stay out of later requests': ({ event, after }) => {
    if (event.type !== 'xstate.done.actor.fitting') return null
    const isOut = JSON.stringify(after.fit) === JSON.stringify(event.output.fit)
    return !isOut && 'a trimmed message is in the request'
  },
  'each call gets exactly one result event': ({ event, before, after, listAnnounced }) => {
    const open = new Set(listUnannounced(after.calls))
    const asked = isAnswer(event) ? event.output.response.toolCalls.map(({ id }) => id) : []
    const known = [...listUnannounced(before?.calls), ...asked]
    const closed = known.filter((id) => !open.has(id)).sort()
    const announced = listAnnounced('tool_result').map(({ callId }) => callId)
    if (closed.join() === announced.sort().join()) return null
    return `results closed: ${closed.join()}; results announced: ${announced.join()}`
  },
})

function listUnannounced(calls: readonly BatchCall[] = []): string[] {
  return calls
    .filter((call) => call.result === undefined || call.unscreenedResult || call.unscreenedArguments)
    .map(({ id }) => id)
}

/** The user input in this event. A reply that no run waits for contains none. */
function listUserInput({ event, isTaken }: Change): unknown[] {
  if (event.type === 'STEER') return [event.text]
  return event.type === 'REPLY' && isTaken ? event.messages.map(({ content }) => content) : []
}

function isKept(input: unknown, { steering, messages }: AgentContext): boolean {
  return steering.some((text) => text === input) || messages.some(({ content }) => content === input)
}

function isFromUser({ role, ...message }: Message): boolean {
  return role === 'user' && !('internal' in message)
}

function getCost({ event, isTaken, findBefore }: Change): Usage | null {
  if (isAnswer(event)) return event.output.response.usage
  if (isFailedRequest(event)) return event.error.usage
  if (event.type === 'xstate.done.actor.fitting') return event.output.usage
  if (event.type === 'CHILD_USAGE') {
    const call = findBefore(event.callId)
    return call && isUnderWay(call) ? event.usage : null
  }
  if (event.type === 'RELEASED' || event.type === 'TOOL_RESULT') return (isTaken && event.usage) || null
  return isTaken && 'partial' in event ? (event.partial?.usage ?? null) : null
}

function getPartialText({ event }: Change): string {
  if (isFailedRequest(event)) return event.error.partialText
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
