import { formatCount } from '../../../core/format/format-words.js'
import { listUnclearedInput } from '../../../../machines/agent/mask-uncleared.js'
import { getInitialGuardrails, type GuardrailsState, resetGuard } from '../../../../guards/state.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'
import { type AgentInvariant, listAnnounced, type Change, createRule, hasStarted } from './invariant-rule.js'

export const guardrailRules: readonly AgentInvariant[] = [
  createRule('a halt is announced and names its guard', (change) => {
    const halts = listAnnounced(change, 'guardrail').filter(({ action }) => action === 'halt')
    const isHalted = hasTaken(change, 'RUNNING.judging.halting')
    if (halts.length !== (isHalted ? 1 : 0)) return `${halts.length} halts were announced`
    return (
      isHalted &&
      change.after.error?.code !== change.after.verdict?.guard &&
      'the error does not name the guard'
    )
  }),
  createRule(
    'when a run continues after a halt, only the guard that halted it is reset',
    ({ before, after, event, isFinal }) => {
      if (before?.state !== 'PAUSED' || !['RESUME', 'STEER'].includes(event.type) || isFinal) return null
      if (after.verdict || after.error) return 'the halt was not reset'
      const { verdict, guardrails } = before
      const expected = verdict ? resetGuard(guardrails, verdict.guard, verdict.userGuard) : guardrails
      return toText(after.guardrails) !== toText(expected) && 'the guards have the wrong state'
    },
  ),
  createRule('with terminalDelegation, a terminal sub-agent failure halts the run immediately', (change) => {
    const { event, after, transitions } = change
    if (event.type !== 'TOOL_RESULT' || transitions.length === 0) return null
    if (!after.config.guardrails.terminalDelegation || !event.result.child) return null
    return !hasTaken(change, 'RUNNING.judging.halting') && `the failure led to ${change.state}`
  }),
  createRule('a halted run consults no guards', (change) => {
    return hasStarted(change, 'consultGuards') && change.after.verdict && change.after.verdict.guard
  }),
  createRule('findings of custom guards take effect', (change) => {
    const { event, before, after } = change
    if (event.type !== 'xstate.done.actor.callGuards' && event.type !== 'xstate.done.actor.resultGuards')
      return null
    const { states, findings } = event.output
    if (Object.entries(states).some(([name, state]) => after.guardrails.user[name] !== state))
      return "the guards' state is lost"
    const spoken = listAnnounced(change, 'guardrail').filter(({ guard }) => guard === 'user_guard')
    if (spoken.length !== findings.length)
      return `${spoken.length} of ${findings.length} findings are announced`
    const hints = findings.filter(({ action }) => action === 'nudge').length
    if (after.nudges.length !== (before?.nudges.length ?? 0) + hints) return 'the nudge is missing'
    const blocks = findings.some(({ action, callIds }) => action === 'block' && callIds === null)
    // Guards are not consulted about calls that only load their tool.
    const left = after.calls.some(({ result, unloaded }) => result === undefined && !unloaded)
    return blocks && left && 'refused calls stay open'
  }),
  createRule('recoveries are announced and counted', (change) => {
    const { before, after } = change
    const repairs = listAnnounced(change, 'guardrail').filter(({ action }) => action === 'recover').length
    const isRepaired = hasTaken(change, 'RUNNING.judging.recovering')
    if (repairs !== (isRepaired ? 1 : 0)) return `${repairs} recoveries were announced`
    return (
      isRepaired && countRecoveries(after) !== countRecoveries(before) + 1 && 'the recovery is not counted'
    )
  }),
  createRule('a model receives a message when it should continue', (change) => {
    if (!hasTaken(change, 'RUNNING.judging.recovering')) return null
    const { before, after } = change
    const hasNudge = after.messages.some(({ internal }, i) => internal && i >= (before?.messages.length ?? 0))
    return after.emptyRetries === before?.emptyRetries && !hasNudge && 'the message is missing'
  }),
  createRule("a blocked run answers with the shield's message", ({ state, event, after }) => {
    if (state !== 'BLOCKED') return null
    const { output } = event as { output?: { message: string } | { message: string }[] }
    const [spoken] = [output].flat()
    const answer = after.messages.findLast(({ role }) => role === 'assistant')
    const isAnswered = answer?.content === spoken?.message && after.error?.code === 'shield'
    return !isAnswered && "the output is not the shield's message"
  }),
  createRule('input refused by a shield is not kept', ({ state, event, before, after }) => {
    if (state !== 'BLOCKED' || event.type !== 'xstate.done.actor.inputShields' || !before) return null
    const refused = listUnclearedInput(before).map(({ id }) => id)
    const remaining = after.messages.filter(
      ({ id, data }) => refused.includes(id) && data?.['withheld'] !== true,
    )
    return remaining.length > 0 && `${formatCount(remaining.length, 'message is', 'messages are')} kept`
  }),
  createRule('shield findings about an answer are announced', (change) => {
    const { event, before } = change
    if (event.type !== 'xstate.done.actor.outputShields' || !before?.pendingAnswer) return null
    const found = event.output.findings.filter(({ action }) => action !== 'allow').length
    const announced = listAnnounced(change, 'shield').length
    return announced !== found && `${announced} of ${found} findings`
  }),
  createRule('an exhausted sub-agent halts the run immediately', (change) => {
    const { event, before, after } = change
    if (event.type !== 'TOOL_RESULT' || event.result.child?.code !== 'provider_quota') return null
    const isOpen = before?.calls.some(({ id, result }) => id === event.callId && result === undefined)
    const isWatched = after.config.guardrails.terminalDelegation !== null
    const isHalted = (change.isFinal || change.isRest) && after.reason === 'terminal_delegation'
    return isOpen && isWatched && !isHalted && `the run is in ${change.state} (${after.reason})`
  }),
  createRule('content pending review is neither announced nor in the transcript', (change) => {
    const { event, after } = change
    if (event.type !== 'xstate.done.actor.model' && event.type !== 'xstate.done.actor.conclusion') return null
    if (after.pendingAnswer === null) return null
    if (listAnnounced(change, 'assistant_message').length > 0) return 'the content is announced'
    return after.messages.at(-1)?.content === after.pendingAnswer.text && 'the content is in the transcript'
  }),
  createRule('arguments pending review are neither announced nor in the transcript', (change) => {
    const { after } = change
    const message = after.messages[after.batchAt]
    const toolCalls = (message?.role === 'assistant' && message.tool_calls) || []
    const announced = listAnnounced(change, 'tool_call').map(({ call }) => call)
    const isShown = ({ id, arguments: text }: BatchCall) =>
      [...toolCalls, ...announced].some(
        ({ id: one, function: { arguments: shown } }) => one === id && shown === text,
      )
    const shown = after.calls.find((call) => call.unscreenedArguments && !call.edited && isShown(call))
    return shown && `the arguments of call '${shown.id}' are shown`
  }),
  createRule('cleared content enters the transcript and is announced once', (change) => {
    const { event, before, after } = change
    if (event.type !== 'xstate.done.actor.outputShields' || !before?.pendingAnswer) return null
    if (after.pendingAnswer !== null) return 'the content is still held'
    const announced = listAnnounced(change, 'assistant_message')
    // A tool result is already in the transcript. Only a shield's refusal is added as a message.
    if (before.messages.at(-1)?.role === 'tool')
      return (
        announced.length !== (change.state === 'BLOCKED' ? 1 : 0) &&
        `${formatCount(announced.length, 'blocked answer was', 'blocked answers were')} announced`
      )
    // The calls of the answer may still be pending review.
    if (after.unemittedStep !== null) return announced.length > 0 && "the answer's calls are announced"
    return (
      (announced.length !== 1 || announced[0]?.message.data?.['withheld'] === true) &&
      `${formatCount(announced.length, 'message was', 'messages were')} announced`
    )
  }),
  createRule('a failed final answer is a warning and not the reason why the run ended', (change) => {
    // The request is repeated without the content that the provider refused.
    const isSentAgain = change.state === 'RUNNING.asking.concluding' && hasStarted(change, 'requestModel')
    const isFailed = change.event.type === 'xstate.error.actor.conclusion' && !isSentAgain
    const warnings = listAnnounced(change, 'warning').filter(({ code }) => code === 'no_conclusion').length
    return warnings !== (isFailed ? 1 : 0) && `${warnings} warnings`
  }),
  createRule('each user message resets the counters', (change) => {
    const { before, after, event } = change
    const isNew = before === undefined || (event.type === 'REPLY' && change.transitions.length > 0)
    if (!isNew || !hasStarted(change, 'requestModel')) return null
    const isFresh =
      after.steps === 0 && after.attempt === 1 && countRecoveries(after) === 0 && !after.lastBatchFailed
    return (
      !(isFresh && toText(after.guardrails) === toText(getInitialGuardrails())) && 'a counter was not reset'
    )
  }),
  createRule('a failed batch is remembered until the next one', ({ before, after, transitions }) => {
    if (!transitions.some((id) => id.startsWith('WAITING_FOR_TOOL.judgingResults'))) return null
    // A call that only loads its tool cannot fail.
    const unloaded = new Set(before?.calls.flatMap((call) => (call.unloaded ? call.id : [])))
    const inCalls = after.calls.map(({ result, id }) => result?.status !== 'ok' && !unloaded.has(id))
    const inMessages = after.messages
      .slice((before?.batchAt ?? 0) + 1)
      .map(
        (message) =>
          message.role === 'tool' &&
          message.data?.['status'] !== undefined &&
          !unloaded.has(message.tool_call_id),
      )
    return (
      after.lastBatchFailed !== [...inCalls, ...inMessages].includes(true) &&
      'the failed batch is not remembered correctly'
    )
  }),
]

function hasTaken({ transitions }: Change, target: string): boolean {
  return transitions.some((id) => id.endsWith(`→ ${target}`))
}

function countRecoveries(counters: Change['before']): number {
  if (!counters) return 0
  const { recoveries, reprompts, emptyRetries, outputRepairs } = counters
  return recoveries + reprompts + emptyRetries + outputRepairs
}

function toText(guardrails: GuardrailsState): string {
  return JSON.stringify(guardrails)
}
