import { formatCount } from '../../../core/format/format-words.js'
import { listUnclearedInput } from '../../../../machines/agent/mask-uncleared.js'
import { getInitialGuardrails, type GuardrailsState, resetGuard } from '../../../../guards/state.js'
import type { Message } from '../../../../machines/agent/messages.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'
import { type Change, createRules, isAnswer } from './invariant-rule.js'

export const guardrailRules = createRules({
  'a halt is announced and names its guard': ({ after, listAnnounced, hasTaken }) => {
    const halts = listAnnounced('guardrail').filter(({ action }) => action === 'halt')
    const isHalted = hasTaken('RUNNING.judging.halting')
    if (halts.length !== (isHalted ? 1 : 0)) return `${halts.length} halts were announced`
    return isHalted && after.error?.code !== after.verdict?.guard && 'the error does not name the guard'
  },
  'when a run continues after a halt, only the guard that halted it is reset': (change) => {
    const { event, before, after, isFinal } = change
    if (before?.state !== 'PAUSED' || !['RESUME', 'STEER'].includes(event.type) || isFinal) return null
    if (after.verdict || after.error) return 'the halt was not reset'
    const { verdict, guardrails } = before
    const expected = verdict ? resetGuard(guardrails, verdict.guard, verdict.userGuard) : guardrails
    return toText(after.guardrails) !== toText(expected) && 'the guards have the wrong state'
  },
  'with terminalDelegation, a terminal sub-agent failure halts the run immediately': (change) => {
    const { event, after, state, isTaken, hasTaken } = change
    if (event.type !== 'TOOL_RESULT' || !isTaken) return null
    if (!after.config.guardrails.terminalDelegation || !event.result.child) return null
    return !hasTaken('RUNNING.judging.halting') && `the failure led to ${state}`
  },
  'a halted run consults no guards': ({ after, hasStarted }) =>
    hasStarted('consultGuards') && after.verdict && after.verdict.guard,
  'findings of custom guards take effect': ({ event, before, after, listAnnounced }) => {
    if (event.type !== 'xstate.done.actor.callGuards' && event.type !== 'xstate.done.actor.resultGuards')
      return null
    const { states, findings } = event.output
    if (Object.entries(states).some(([name, state]) => after.guardrails.user[name] !== state))
      return "the guards' state is lost"
    const spoken = listAnnounced('guardrail').filter(({ guard }) => guard === 'user_guard')
    if (spoken.length !== findings.length)
      return `${spoken.length} of ${findings.length} findings are announced`
    const hints = findings.filter(({ action }) => action === 'nudge').length
    if (after.nudges.length !== (before?.nudges.length ?? 0) + hints) return 'the nudge is missing'
    const blocks = findings.some(({ action, callIds }) => action === 'block' && callIds === null)
    // Guards are not consulted about calls that only load their tool.
    const left = after.calls.some(({ result, unloaded }) => result === undefined && !unloaded)
    return blocks && left && 'refused calls stay open'
  },
  'recoveries are announced and counted': ({ before, after, listAnnounced, hasTaken }) => {
    const repairs = listAnnounced('guardrail').filter(({ action }) => action === 'recover').length
    const isRepaired = hasTaken('RUNNING.judging.recovering')
    if (repairs !== (isRepaired ? 1 : 0)) return `${repairs} recoveries were announced`
    const isCounted = countRecoveries(after) === countRecoveries(before) + 1
    return isRepaired && !isCounted && 'the recovery is not counted'
  },
  'a model receives a message when it should continue': ({ before, after, hasTaken }) => {
    if (!hasTaken('RUNNING.judging.recovering')) return null
    const hasNudge = after.messages.some(({ internal }, i) => internal && i >= (before?.messages.length ?? 0))
    return after.emptyRetries === before?.emptyRetries && !hasNudge && 'the message is missing'
  },
  "a blocked run answers with the shield's message": ({ event, after, state }) => {
    if (state !== 'BLOCKED') return null
    const { output } = event as { output?: { message: string } | { message: string }[] }
    const [spoken] = [output].flat()
    const answer = after.messages.findLast(({ role }) => role === 'assistant')
    const isAnswered = answer?.content === spoken?.message && after.error?.code === 'shield'
    return !isAnswered && "the output is not the shield's message"
  },
  'input refused by a shield is not kept': ({ event, before, after, state }) => {
    if (state !== 'BLOCKED' || event.type !== 'xstate.done.actor.inputShields' || !before) return null
    const refused = listUnclearedInput(before).map(({ id }) => id)
    const { length } = after.messages.filter(
      ({ id, data }) => refused.includes(id) && data?.['withheld'] !== true,
    )
    return length > 0 && `${formatCount(length, 'message is', 'messages are')} kept`
  },
  'shield findings about an answer are announced': ({ event, before, listAnnounced }) => {
    if (event.type !== 'xstate.done.actor.outputShields' || !before?.pendingAnswer) return null
    const found = event.output.findings.filter(({ action }) => action !== 'allow').length
    const announced = listAnnounced('shield').length
    return announced !== found && `${announced} of ${found} findings`
  },
  'an exhausted sub-agent halts the run immediately': ({
    event,
    after,
    state,
    isFinal,
    isRest,
    findBefore,
  }) => {
    if (event.type !== 'TOOL_RESULT' || event.result.child?.code !== 'provider_quota') return null
    const call = findBefore(event.callId)
    const isOpen = call !== undefined && call.result === undefined
    const isWatched = after.config.guardrails.terminalDelegation !== null
    const isHalted = (isFinal || isRest) && after.reason === 'terminal_delegation'
    return isOpen && isWatched && !isHalted && `the run is in ${state} (${after.reason})`
  },
  'content pending review is neither announced nor in the transcript': ({ event, after, listAnnounced }) => {
    if (!isAnswer(event) || after.pendingAnswer === null) return null
    if (listAnnounced('assistant_message').length > 0) return 'the content is announced'
    return after.messages.at(-1)?.content === after.pendingAnswer.text && 'the content is in the transcript'
  },
  'arguments pending review are neither announced nor in the transcript': (change) => {
    const { after, listAnnounced } = change
    const message = after.messages[after.batchAt]
    const toolCalls = (message?.role === 'assistant' && message.tool_calls) || []
    const announced = listAnnounced('tool_call').map(({ call }) => call)
    const isShown = ({ id, arguments: text }: BatchCall) =>
      [...toolCalls, ...announced].some(
        ({ id: one, function: { arguments: shown } }) => one === id && shown === text,
      )
    const shown = after.calls.find((call) => call.unscreenedArguments && !call.edited && isShown(call))
    return shown && `the arguments of call '${shown.id}' are shown`
  },
  'cleared content enters the transcript and is announced once': (change) => {
    const { event, before, after, state, listAnnounced } = change
    if (event.type !== 'xstate.done.actor.outputShields' || !before?.pendingAnswer) return null
    if (after.pendingAnswer !== null) return 'the content is still held'
    const announced = listAnnounced('assistant_message')
    // A tool result is already in the transcript. Only a shield's refusal is added as a message.
    if (before.messages.at(-1)?.role === 'tool')
      return announced.length === (state === 'BLOCKED' ? 1 : 0)
        ? null
        : `${formatCount(announced.length, 'blocked answer was', 'blocked answers were')} announced`
    // The calls of the answer may still be pending review.
    if (after.unemittedStep !== null) return announced.length > 0 && "the answer's calls are announced"
    if (announced.length === 1 && announced[0]?.message.data?.['withheld'] !== true) return null
    return `${formatCount(announced.length, 'message was', 'messages were')} announced`
  },
  'a failed final answer is a warning and not the reason why the run ended': (change) => {
    const { event, state, listAnnounced, hasStarted } = change
    // The request is repeated without the content that the provider refused.
    const isSentAgain = state === 'RUNNING.asking.concluding' && hasStarted('requestModel')
    const isFailed = event.type === 'xstate.error.actor.conclusion' && !isSentAgain
    const warnings = listAnnounced('warning').filter(({ code }) => code === 'no_conclusion').length
    return warnings !== (isFailed ? 1 : 0) && `${warnings} warnings`
  },
  'each user message resets the counters': ({ event, before, after, isTaken, hasStarted }) => {
    const isNew = before === undefined || (event.type === 'REPLY' && isTaken)
    if (!isNew || !hasStarted('requestModel')) return null
    const isFresh =
      after.steps === 0 && after.attempt === 1 && countRecoveries(after) === 0 && !after.lastBatchFailed
    const isReset = isFresh && toText(after.guardrails) === toText(getInitialGuardrails())
    return !isReset && 'a counter was not reset'
  },
  'a failed batch is remembered until the next one': ({ before, after, transitions }) => {
    if (!transitions.some((id) => id.startsWith('WAITING_FOR_TOOL.judgingResults'))) return null
    // A call that only loads its tool cannot fail.
    const unloaded = new Set(before?.calls.flatMap((call) => (call.unloaded ? call.id : [])))
    const inCalls = after.calls.map(({ result, id }) => result?.status !== 'ok' && !unloaded.has(id))
    const isFailure = (message: Message): boolean =>
      message.role === 'tool' && message.data?.['status'] !== undefined && !unloaded.has(message.tool_call_id)
    const hasFailed =
      inCalls.includes(true) || after.messages.slice((before?.batchAt ?? 0) + 1).some(isFailure)
    return after.lastBatchFailed !== hasFailed && 'the failed batch is not remembered correctly'
  },
})

function countRecoveries(counters: Change['before']): number {
  if (!counters) return 0
  const { recoveries, reprompts, emptyRetries, outputRepairs } = counters
  return recoveries + reprompts + emptyRetries + outputRepairs
}

function toText(guardrails: GuardrailsState): string {
  return JSON.stringify(guardrails)
}
