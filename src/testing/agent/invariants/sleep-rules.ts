import type { AgentContext } from '../../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../../machines/agent/machine-events.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'
import { isChildPaused } from '../../../../machines/agent/sub-agent-questions.js'
import { type AgentInvariant, createRule, hasBegunStep, listAnnounced } from './invariant-rule.js'

/** Rules for runs that sleep. */
export const sleepRules: readonly AgentInvariant[] = [
  createRule('no model is asked while a run is to sleep', (change) => {
    const { after, now } = change
    return hasBegunStep(change) && after.wakeAt !== null && now < after.wakeAt && `until ${after.wakeAt}`
  }),
  createRule('a run is to be woken only where it sleeps, or is about to', ({ after, state, isFinal }) => {
    const isAsleep = sleepReasons.test(after.reason ?? '') && state === 'PAUSED'
    if (after.reason === 'sleeping' && !isAsleep) return `in ${state}`
    if (isAsleep && (state !== 'PAUSED' || after.wakeAt === null)) return `in ${state}, until ${after.wakeAt}`
    return after.wakeAt !== null && (isFinal || (state === 'PAUSED' && !isAsleep)) && `until ${after.wakeAt}`
  }),
  createRule('only a resume, a message or an end wakes a run', ({ event, before, after }) => {
    const isWoken = isSleeping(before) && !isSleeping(after)
    return isWoken && !/^(RESUME|STEER|CANCEL|STORE_FAILED)$/.test(event.type) && `${event.type} woke it`
  }),
  createRule(
    'a resume or a message wakes a run, unless the resume is for later',
    ({ event, before, after }) => {
      if (!isSleeping(before) || !/^(RESUME|STEER)$/.test(event.type)) return null
      const at = findLaterDate(event)
      if (at === null) return isSleeping(after) && 'it sleeps on'
      return after.wakeAt !== at && `until ${after.wakeAt}`
    },
  ),
  createRule(
    'a paused run sleeps from a resume with a date on, and until that date',
    ({ event, before, after }) => {
      const at = findLaterDate(event)
      if (at === null || before?.state !== 'PAUSED') return null
      return (after.reason !== 'sleeping' || after.wakeAt !== at) && `${after.reason} until ${after.wakeAt}`
    },
  ),
  createRule('a resume for later that withdraws a pause is noted', ({ event, before, after }) => {
    const at = findLaterDate(event)
    if (at === null || !before?.pausing || before.state === 'PAUSED' || after.pausing) return null
    return (after.wakeAt ?? 0) < at && `until ${after.wakeAt}`
  }),
  createRule('a run falls asleep until the latest date that its batch has asked for', (change) => {
    const { before, after, event, now } = change
    if (before === undefined || before.state === 'PAUSED' || after.state !== 'PAUSED') return null
    // Shields decide at this moment which of the results there are.
    if (event.type === 'xstate.done.actor.resultShields') return null
    const asked = listDates(before.calls, event, now).concat(
      after.calls.filter(isChildPaused).flatMap(toDate),
    )
    const until = Math.max(...asked, before.wakeAt ?? -Infinity)
    if (after.reason === 'paused') return !before.pausing && until > now && 'it is only paused'
    return after.reason === 'sleeping' && after.wakeAt !== until && `until ${after.wakeAt}, not ${until}`
  }),
  createRule('a run that waits for a shared budget sleeps until the budget is whole again', (change) => {
    const { before, after, event, state } = change
    const failure = event.type === 'xstate.error.actor.model' ? event.error : undefined
    const at = failure?.code === 'shared_budget' ? failure.wakeAt : undefined
    if (before === undefined || at === undefined)
      return after.reason === 'shared_budget' && state === 'PAUSED' && !isSleeping(before) && event.type
    if (state !== 'PAUSED') return `it led to ${state}`
    if (before.pausing) return after.reason !== 'paused' && `it rests for ${after.reason}`
    if (after.reason !== 'shared_budget' || after.error?.budget !== failure?.budget)
      return 'it does not say so'
    if (after.error?.recoverable !== true) return 'it says that waiting is no use'
    return after.wakeAt !== Math.max(at, before.wakeAt ?? at) && `until ${after.wakeAt}`
  }),
  createRule('no model is asked when guards have let results pass that ask for sleep', (change) => {
    const { before, event, now } = change
    if (event.type !== 'xstate.done.actor.resultGuards' || !before || before.steering.length > 0) return null
    return hasBegunStep(change) && listDates(before.calls, event, now).length > 0 && 'one is'
  }),
  createRule('a rest says until when the run sleeps', (change) => {
    const told = listAnnounced(change, 'state_changed').filter(({ to }) => to === 'PAUSED')
    const { wakeAt } = change.after
    return told.some((one) => one.wakeAt !== (wakeAt ?? undefined)) && JSON.stringify(told)
  }),
]

const sleepReasons = /^(sleeping|shared_budget)$/

function isSleeping(run: AgentContext | undefined): boolean {
  return run?.state === 'PAUSED' && sleepReasons.test(run.reason ?? '')
}

const toDate = ({ wakeAt }: { wakeAt?: number }): number[] => (wakeAt === undefined ? [] : [wakeAt])

function findLaterDate(event: AgentMachineEvent): number | null {
  const { at, now = 0 } = event.type === 'RESUME' ? event : {}
  return at !== undefined && at > now ? at : null
}

/** The dates to come of the results of a batch, with that of the event. */
function listDates(calls: readonly BatchCall[], event: AgentMachineEvent, now: number): number[] {
  const results = calls.map(({ id, result }) =>
    event.type === 'TOOL_RESULT' && event.callId === id ? (result ?? event.result) : result,
  )
  return results.flatMap((result) => (result?.status === 'ok' ? toDate(result) : [])).filter((at) => at > now)
}
