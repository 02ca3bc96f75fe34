import { formatCount } from '../../../core/format/format-words.js'
import { findStrictest } from '../../../../machines/agent/approvals.js'
import type { AgentContext } from '../../../../machines/agent/context.js'
import { listLate } from '../../../../machines/agent/due-times.js'
import type { NewGrant } from '../../../../machines/agent/grant.js'
import { hasGrantedCalls } from '../../../../machines/agent/grants.js'
import { listAnswerableCalls, listPendingCalls, isAnsweredBy } from '../../../../machines/agent/questions.js'
import { findSpeaker } from '../../../../machines/agent/messages.js'
import { findActiveSkills } from '../../../../machines/agent/skills.js'
import type { PendingCall } from '../../../../machines/agent/run-result.js'
import { isRunnable, type BatchCall, type ChildQuestion } from '../../../../machines/agent/batch-calls.js'
import { type Change, createRules, isAnswer, listOpenCalls } from './invariant-rule.js'

export const callRules = createRules({
  'all complete calls that need no answer are started, and no others': (change) => {
    const { event, now, after, hasStarted } = change
    if (!hasStarted('runTools')) return null
    const open = after.calls.filter(({ result }) => result === undefined)
    if (after.response !== 'calls') return `the answer was ${after.response}`
    if (after.verdict) return `a guard has halted the run (${after.verdict.guard})`
    const canStart = (call: BatchCall): boolean => isRunnable(call) && (call.expiresAt ?? Infinity) > now
    if (hasGrantedCalls(after, now)) return 'a call with a grant has not started'
    const wrong = open.filter((call) => (call.started ? !isRunnable(call) : canStart(call)))
    if (wrong.length > 0) return `call ${wrong.map(({ id }) => id).join()} is in the wrong state`
    // Grants and approvals of calls that had not started can end before the run is resumed.
    const mayBeIdle = event.type === 'RESUMED'
    return !mayBeIdle && !open.some(({ started }) => started) && 'no call is ready to run'
  },
  'a call never starts after its question expires': ({ now, after, findBefore }) => {
    const wrong = after.calls.find(
      ({ id, started, expiresAt = Infinity }) => started && expiresAt <= now && !findBefore(id)?.started,
    )
    return wrong && `'${wrong.id}' starts after its question expired`
  },
  'a call that needs an approval starts with one, or with a grant that covers it': (change) => {
    const { event, now, findBefore } = change
    const grants = listUsable(change)
    const wrong = listStarting(change).find((call) => {
      if (call.grant === undefined)
        return findBefore(call.id)?.needs === 'approval' && event.type !== 'APPROVE'
      const { uses = 1, until = Infinity } = grants.find(({ id }) => id === call.grant) ?? { uses: 0 }
      return call.approved !== true || uses < 1 || until <= now
    })
    return wrong && `'${wrong.id}' starts without one`
  },
  'a use of a grant counts when its call starts': (change) => {
    const wrong = listUsable(change).find(({ id, uses = Infinity }) => {
      const left = change.after.grants?.find((grant) => grant.id === id)?.uses ?? uses
      return listStarting(change).some(({ grant }) => grant === id) && left >= uses && uses < Infinity
    })
    return wrong && `'${wrong.id}' is not counted`
  },
  'a revoked grant has ended': ({ event, after }) => {
    if (event.type !== 'REVOKE' || !('grant' in event)) return null
    return after.grants?.some(({ id }) => id === event.grant) === true && `'${event.grant}' is left`
  },
  'an approval never counts after its question expires': ({ event, now, before, isTaken }) => {
    if (event.type !== 'APPROVE' || !isTaken || !before) return null
    const question = listAnswerableCalls(before).find(({ callId }) => callId === event.callId)
    return (question?.expiresAt ?? Infinity) <= now && 'it arrived after the question expired'
  },
  'no call starts while an expired question is open': ({ event, now, after, hasStarted }) => {
    if (!hasStarted('runTools') || event.type === 'RESUMED') return null
    const [late] = listLate(after, now)
    return late && `'${late.call.id}' is open`
  },
  'an early expiry event has no effect': ({ event, now, before, isTaken }) => {
    const isEarly = event.type === 'APPROVAL_EXPIRED' && before && listLate(before, now).length === 0
    return isEarly && isTaken && 'the state changed'
  },
  'when an expired question ends the run, its call is closed as expired': (change) => {
    const { now, before, after, listAnnounced } = change
    if (after.state !== 'CANCELLED' || after.reason !== 'approval_expired' || !before) return null
    const late = listLate(before, now).flatMap(({ call, question }) => (question ? [] : [call.id]))
    const wrong = listAnnounced('tool_result').find(
      ({ callId, status }) => late.includes(callId) && status !== 'expired',
    )
    return wrong && `'${wrong.callId}' is closed as ${wrong.status}`
  },
  'calls that need no answer run before the run waits for input': ({ before, after }) => {
    const isAsking = after.state === 'WAITING_FOR_INPUT' && before?.state !== 'WAITING_FOR_INPUT'
    const runnable = isAsking ? listRunnable(after) : []
    return runnable.length > 0 && `${runnable.join()} could run`
  },
  'all runnable calls finish before shields review the results': ({ after, transitions }) => {
    const runnable = hasTakenBranch(transitions, 'hasResultsToScreen') ? listRunnable(after) : []
    return runnable.length > 0 && `${runnable.join()} could run`
  },
  'shields review again when a person submits a result or rejects a call': (change) => {
    const { event, state, isTaken, hasStarted } = change
    const isResult = event.type === 'TOOL_OUTPUT' || event.type === 'REJECT'
    const isDue = isResult && isTaken && state === 'WAITING_FOR_TOOL.screeningResults'
    return isDue && !hasStarted('screenResults') && 'the shields did not review the results again'
  },
  'shields review edited arguments only after every approval is decided': ({ after, transitions }) => {
    const calls = hasTakenBranch(transitions, 'hasCallsToScreen') ? listAnswerableCalls(after) : []
    const requested = calls.filter(({ needs }) => needs === 'approval').map(({ callId }) => callId)
    return requested.length > 0 && `${requested.join()} is waiting for an approval`
  },
  'no call starts twice unless the run is resumed': ({ event, after, hasStarted, findBefore }) => {
    if (!hasStarted('runTools') || event.type === 'RESUMED') return null
    const again = after.calls.find(({ id, result, started }) => !result && started && findBefore(id)?.started)
    return again && `'${again.id}' is`
  },
  'a resumed run never restarts a call that must not run twice': (change) => {
    const { event, after, hasStarted, findBefore } = change
    if (!hasStarted('runTools') || event.type !== 'RESUMED') return null
    const again = after.calls.find(({ id, name, result, started, unloaded, handle }) => {
      // A call without a matching tool executes nothing.
      const isCall = !unloaded && Object.hasOwn(after.tools, name)
      const isAgain = started && !result && isCall && findBefore(id)?.started
      const { readOnly, idempotent, delegate, keepsHandle } = after.tools[name] ?? {}
      return isAgain && !readOnly && !idempotent && !delegate && !(keepsHandle && handle !== undefined)
    })
    return again && `'${again.id}' is started again`
  },
  'loaded tools stay loaded, and only a running call loads more': (change) => {
    const { event, before, after, findBefore } = change
    const then = before?.loaded ?? after.loaded
    if (then.some((name, i) => after.loaded[i] !== name)) return `${then.join()} was loaded`
    const added = after.loaded.slice(then.length)
    if (added.length === 0) return null
    if (new Set(after.loaded).size < after.loaded.length) return `${added.join()} is loaded twice`
    if (event.type !== 'TOOLS_LOADED') return `${event.type} loads ${added.join()}`
    return !findBefore(event.callId)?.started && `'${event.callId}' is not running`
  },
  'a call to an unloaded deferred tool affects neither guards nor caps': ({ after }) => {
    const unloaded = after.calls.filter((call) => call.unloaded)
    const wrong = unloaded.find(({ fact, result }) => fact !== undefined || result?.refusedBy !== undefined)
    if (wrong) return `'${wrong.id}' does`
    const isAlone = unloaded.length > 0 && unloaded.length === after.calls.length
    return isAlone && after.verdict !== null && 'the call halted the run'
  },
  'a running call records its skill change': ({ event, findBefore, findAfter }) => {
    if (event.type !== 'SKILL_CHANGED') return null
    const call = findBefore(event.callId)
    if (!call?.started || call.result) return null
    return findAfter(event.callId)?.skill !== event.change && `'${call.id}' does not record it`
  },
  'a call keeps its handle until it has a result': ({ event, before, findBefore, findAfter }) => {
    const lost = before?.calls.find(({ id, handle, result }) => {
      const now = findAfter(id)
      const isKept = event.type === 'HANDLE_SAVED' && event.callId === id
      return now && !result && !isKept && JSON.stringify(now.handle) !== JSON.stringify(handle)
    })
    if (lost) return !isAnswer(event) && `'${lost.id}' lost its handle`
    const call = event.type === 'HANDLE_SAVED' ? findBefore(event.callId) : undefined
    if (event.type !== 'HANDLE_SAVED' || !call?.started || call.result) return null
    return findAfter(call.id)?.handle !== event.handle && `'${call.id}' does not record it`
  },
  'a call with a handle continues in another process': (change) => {
    const { event, before, after, findAfter } = change
    if (event.type !== 'RESUMED' || !before) return null
    const stopped = before.calls.find(({ id, name, started, result, handle }) => {
      const isResumable = [before.tools, after.tools].every((tools) => tools[name]?.keepsHandle)
      const now = findAfter(id)
      const isOpen = started && !result && handle !== undefined && isResumable
      return isOpen && now && (now.result !== undefined || now.needs !== 'nobody')
    })
    return stopped && after.state === 'WAITING_FOR_TOOL' && `'${stopped.id}' was not continued`
  },
  'active skills match the skill changes in the transcript': ({ after }) => {
    // A handoff unloads all skills at the end of its batch.
    if (after.calls.some(({ handoff }) => handoff)) return null
    const noted = findActiveSkills(after.messages)
    const isSame = JSON.stringify(after.skills) === JSON.stringify(noted)
    return !isSame && `the transcript has ${noted.length} active skills`
  },
  'a running call records its handoff': ({ event, findBefore, findAfter }) => {
    if (event.type !== 'HANDED_OFF') return null
    const call = findBefore(event.callId)
    if (!call?.started || call.result) return null
    return findAfter(event.callId)?.handoff?.to !== event.to && `'${call.id}' does not record it`
  },
  'after a batch, the active agent is the target of the last handoff': ({ after }) => {
    const speaker = findSpeaker(after.messages)
    return after.calls.length === 0 && after.speaker !== speaker && `the active agent is ${String(speaker)}`
  },
  'a handoff is announced when it takes effect, and the new agent has its own tools': (change) => {
    const { before, after, listAnnounced, findBefore } = change
    const announced = listAnnounced('handed_off')
    const then = before?.speaker ?? null
    if (announced.length === 0)
      return then !== after.speaker && `${String(after.speaker)} is active without an announcement`
    const [{ callId, from, to }] = announced as [(typeof announced)[number]]
    if (announced.length > 1 || from !== then || to !== after.speaker)
      return `the handoff is announced from ${String(from)} to ${to}`
    const own = findBefore(callId)?.handoff?.tools
    return own !== undefined && after.tools !== own && "the new agent has the previous agent's tools"
  },
  'one answer causes at most one handoff': ({ event, before, after }) => {
    if (isAnswer(event) || !before) return null
    const isHandoff = ({ name, started }: BatchCall): boolean =>
      started === true && after.tools[name]?.handoff === true
    const running = after.calls.filter(isHandoff)
    return running.length > 1 && `${running.map(({ id }) => id).join()} were started`
  },
  'a loaded skill refuses calls to tools that it does not allow': ({ after, transitions }) => {
    if (!transitions.some((id) => id.startsWith('RUNNING.judging.judgingCalls'))) return null
    const isForbidden = ({ name, result }: BatchCall): boolean =>
      !result &&
      !after.tools[name]?.skill &&
      after.skills.some(({ allowedTools }) => allowedTools?.includes(name) === false)
    const wrong = after.calls.find(isForbidden)
    return wrong && `'${wrong.id}' is not refused`
  },
  "a call excluded by the step's plan never runs": ({ after, hasStarted }) => {
    const { plan, steps } = after
    if (!hasStarted('runTools') || plan?.step !== steps || !plan.tools) return null
    const wrong = after.calls.find(({ name, started }) => started && !plan.tools?.includes(name))
    return wrong && `'${wrong.id}' runs`
  },
  'prepareStep is called once per step, before the request': (change) => {
    const { event, before, after, state, isTaken, hasStarted } = change
    if (!after.features.prepareStep) return hasStarted('prepareStep') && 'the agent has no prepareStep'
    const isPlanned = after.plan?.step === after.steps + 1
    if (hasStarted('prepareStep')) return isPlanned && 'the step already has a plan'
    if (event.type === 'xstate.done.actor.plan' && before && isTaken)
      return after.plan?.step !== before.steps + 1 && 'the plan is lost'
    const isAsked = hasStarted('requestModel') && state === 'RUNNING.asking.requesting'
    return isAsked && !isPlanned && 'a request is made without a plan'
  },
  'a call that needs approval runs only after it is approved': ({ event, after, findBefore }) => {
    const freed = after.calls.filter(
      ({ id, needs }) => (needs === 'nobody' || needs === 'client') && findBefore(id)?.needs === 'approval',
    )
    const wrong = freed.find(
      ({ id, grant }) => grant === undefined && !(event.type === 'APPROVE' && event.callId === id),
    )
    return wrong && !isAnswer(event) && `'${wrong.id}' was released by ${event.type}`
  },
  'a call runs only if its policies allow it': ({ after, findBefore }) => {
    const isNew = (call: BatchCall): boolean => call.started === true && !findBefore(call.id)?.started
    const wrong = after.calls.find((call) => {
      if (!isNew(call) && !(call.needs === 'client' && !call.undecided)) return false
      if (call.result !== undefined && !call.started) return false
      const strictest = findStrictest(call)
      return (
        call.undecided ||
        strictest === 'deny' ||
        (strictest === 'ask' && !(call.approved && hasVotes(call, after.requesters)))
      )
    })
    return wrong && `'${wrong.id}' ran, but its policies decided ${findStrictest(wrong)}`
  },
  'policies decide on changed arguments': ({ event, after, findBefore }) => {
    const wrong = after.calls.find((call) => {
      const earlier = findBefore(call.id)
      if (!earlier?.decisions || call.result) return false
      if (event.type === 'APPROVE' && event.callId === call.id && call.arguments !== earlier.arguments)
        return !call.undecided || (call.approvals?.length ?? 1) !== 1
      if (event.type === 'xstate.done.actor.callShields' && earlier.undecided) {
        if (!event.output.find(({ callId }) => callId === call.id)?.decisions) return true
      }
      const isSame = call.arguments === earlier.arguments && !earlier.undecided
      return !isSame && call.decisions === earlier.decisions && !call.undecided
    })
    return wrong && `no policy decided on the new arguments of '${wrong.id}'`
  },
  'an answer from a person or client applies to its call': (change) => {
    const { event, isTaken, listAnnounced, findBefore, findAfter } = change
    if (!('callId' in event)) return null
    const call = findBefore(event.callId)
    if (call === undefined || call.result || !isTaken) return null
    const now = findAfter(event.callId)
    const announced = listAnnounced('tool_result').find(({ callId }) => callId === event.callId)
    if (now?.unscreenedResult) return announced && 'the result is announced before shields have reviewed it'
    switch (event.type) {
      case 'APPROVE':
        if (now?.needs === 'approval')
          return now.approvals?.length !== (call.approvals?.length ?? 0) + 1 && 'the approval is not counted'
        if (now?.needs !== (call.client ? 'client' : 'nobody')) return 'the call is not approved'
        return event.arguments !== undefined && now.arguments !== event.arguments && 'the edit is lost'
      case 'REJECT':
        if (announced?.status === 'rejected' && announced.content.includes(event.why)) return null
        return 'the call is not rejected'
      case 'TOOL_OUTPUT':
        return !(announced?.status === 'ok' && announced.content === event.content) && 'the output is lost'
      case 'TOOL_RESULT':
        return announced?.content !== event.result.content && 'the result is lost'
      default:
        return null
    }
  },
  'only the party that a call is waiting for can answer it, and only while it is waiting': (change) => {
    const { event, before, isTaken } = change
    const needs = { APPROVE: 'approval', REJECT: 'approval', TOOL_OUTPUT: 'client' }[event.type as string]
    if (needs === undefined || !('callId' in event) || !before) return null
    const isAsked = listAnswerableCalls(before).some(
      (one) => one.callId === event.callId && isAnsweredBy(one.needs, needs),
    )
    return !isAsked && isTaken && `'${event.callId}' is not waiting for this answer`
  },
  'a result is never replaced': ({ event, before, findAfter }) => {
    if (isAnswer(event)) return null
    const changed = before?.calls.find(
      ({ id, result, unscreenedResult }) =>
        result && !unscreenedResult && findAfter(id) && findAfter(id)?.result !== result,
    )
    return changed && `the result of '${changed.id}' was replaced`
  },
  'when the runner ends, exactly the calls it started are closed': (change) => {
    const { event, before, after, isTaken, listAnnounced } = change
    if (!/^(BATCH_DONE|xstate\.(done|error)\.actor\.tools)$/.test(event.type) || !isTaken) return null
    const announced = listAnnounced('tool_result').map(({ callId }) => callId)
    const left = before?.calls.filter(({ started, result }) => started && !result).map(({ id }) => id) ?? []
    if (left.some((id) => !announced.includes(id))) return `${left.join()} stay open`
    const others = listOpenCalls(before?.calls.filter(({ started }) => !started))
    return (
      after.state === 'WAITING_FOR_INPUT' &&
      others.some((id) => announced.includes(id)) &&
      'the runner closed calls that it did not start'
    )
  },
  'the end of a question is announced once': (change) => {
    const { event, isTaken, listAnnounced, findBefore, findAfter } = change
    if (event.type !== 'APPROVE' && event.type !== 'REJECT') return null
    const call = findBefore(event.callId)
    if (call?.needs !== 'approval' || call.result || !isTaken) return null
    const now = findAfter(event.callId)
    const isOpen = now?.needs === 'approval' && !now.result && !now.unscreenedResult
    const announced = listAnnounced('approval_decided').filter(({ callId }) => callId === call.id)
    return (
      announced.length !== (isOpen ? 0 : 1) && `the end is announced ${formatCount(announced.length, 'time')}`
    )
  },
  'each approval is requested once whenever the run starts waiting for input': (change) => {
    const { event, before, after, state, isTaken, transitions, listAnnounced } = change
    const requested = listAnnounced('approval_requested').map(({ callId }) => callId)
    const isEntered =
      state === 'WAITING_FOR_INPUT.approval' &&
      (before?.state !== 'WAITING_FOR_INPUT' || hasTakenBranch(transitions, 'hasCallsToApprove'))
    const isAgain = event.type === 'REVOKE' && 'callId' in event && after.state === 'WAITING_FOR_INPUT'
    const again = isAgain && isTaken ? [event.callId] : []
    const open = isEntered ? listPending('approval', after) : again
    return (
      requested.sort().join() !== open.sort().join() && `requested: ${requested.join()}; open: ${open.join()}`
    )
  },
  "a tool's questions are announced whenever the run starts waiting for input": (change) => {
    const { before, after, listAnnounced } = change
    const requested = listAnnounced('elicitation_requested').map(({ callId }) => callId)
    const open = listPending('elicitation', after)
    const isEntered = after.state === 'WAITING_FOR_INPUT' && before?.state !== 'WAITING_FOR_INPUT'
    const isWrong =
      requested.some((id) => !open.includes(id)) || (isEntered && requested.length !== open.length)
    return isWrong && `announced: ${requested.join()}; open: ${open.join()}`
  },
  'a run waits for input only while a call is waiting': ({ after, state }) => {
    if (state === 'WAITING_FOR_INPUT.approval')
      return listPending('approval', after).length === 0 && 'no call is waiting'
    return (
      state === 'WAITING_FOR_INPUT.toolOutput' &&
      listPending('client', after).length + listPending('elicitation', after).length === 0 &&
      'no call is waiting'
    )
  },
  'a resting sub-agent keeps its call open and continues only after all its questions are answered': (
    change,
  ) => {
    const { event, after, isTaken, findBefore, findAfter } = change
    if (event.type === 'CHILD_WAITING' && isTaken) {
      const call = findAfter(event.callId)
      const isKept = call?.needs === 'child' && !call.result && !call.started
      return !isKept && `'${event.callId}' is not resting`
    }
    const freed = after.calls.filter(
      ({ id, needs }) => needs === 'nobody' && findBefore(id)?.needs === 'child',
    )
    const early = freed.find(({ questions = [] }) => questions.some(isOpen) && !questions.some(isUrgent))
    if (early) return `'${early.id}' has open questions`
    const wrong = freed.find(({ questions = [] }) =>
      questions.length === 0
        ? !/^(RESUME|STEER)$/.test(event.type)
        : !('callId' in event) && !questions.some(({ answer }) => answer?.type === 'expired'),
    )
    return wrong && !isAnswer(event) && `'${wrong.id}' was released by ${event.type}`
  },
  'an answer for a sub-agent is stored and does not become the result of its call': (change) => {
    const { event, before, after, isTaken, listAnnounced } = change
    const answers = /^(APPROVE|REJECT|TOOL_OUTPUT)$/.test(event.type) && 'callId' in event
    if (!answers || !event.callId.includes('/') || !isTaken) return null
    const [id, inside] = event.callId.split('/')
    const findAnswer = (calls: readonly BatchCall[] = []): unknown =>
      calls.find((call) => call.id === id)?.questions?.find(({ callId }) => callId === inside)?.answer
    if (findAnswer(before?.calls) !== undefined) return 'the question was already answered'
    if (listAnnounced('tool_result').length > 0) return 'the answer is announced as a result'
    return findAnswer(after.calls) === undefined && 'the answer is lost'
  },
})

function listStarting({ after, findBefore }: Change): BatchCall[] {
  return after.calls.filter(({ id, started }) => started && !findBefore(id)?.started)
}

/** The grants before any call starts, with the new one, and with the uses of calls that could not start. */
function listUsable({ before, event, findAfter }: Change): NewGrant[] {
  const added = event.type === 'GRANT' || event.type === 'APPROVE' ? event.grant : undefined
  const { calls = [], grants = [] } = before ?? {}
  const isBack = ({ id, grant }: BatchCall): boolean => {
    const call = findAfter(id)
    return grant !== undefined && call !== undefined && call.grant === undefined
  }
  const others = grants.flatMap(({ uses, ...grant }) => {
    if (grant.id === added?.id) return []
    if (uses === undefined) return [grant]
    return [{ ...grant, uses: uses + calls.filter((call) => call.grant === grant.id && isBack(call)).length }]
  })
  return added ? [...others, added] : others
}

const isOpen = ({ answer }: ChildQuestion): boolean => answer === undefined

/** An approved call that can expire starts immediately. */
const isUrgent = ({ answer, expiresAt }: ChildQuestion): boolean =>
  answer?.type === 'approve' && expiresAt !== undefined

function hasTakenBranch(transitions: readonly string[], guard: string): boolean {
  return transitions.some((id) => id.startsWith(`WAITING_FOR_TOOL.dispatching: always [${guard}]`))
}

function listRunnable({ calls }: AgentContext): string[] {
  return calls.filter(isRunnable).map(({ id }) => id)
}

function listPending(needs: PendingCall['needs'], context: AgentContext): string[] {
  return listPendingCalls(context)
    .filter((one) => one.needs === needs)
    .map(({ callId }) => callId)
}

/** Whether different people who may approve have done so. */
function hasVotes(
  { decisions = [], approvals = [] }: BatchCall,
  requesters: AgentContext['requesters'] = [],
): boolean {
  return decisions.every(({ decision, shadow, approvers }) => {
    if (decision !== 'ask' || shadow || !approvers) return true
    const { ids = [], roles = [], count = 1, notRequester } = approvers
    const people = new Map(approvals.flatMap(({ by }) => (by ? [[by.id, by] as const] : [])))
    const suitable = [...people.values()].filter(
      ({ id, roles: own = [] }) =>
        !(notRequester && requesters.some((one) => one.id === id)) &&
        (ids.length + roles.length === 0 || ids.includes(id) || roles.some((role) => own.includes(role))),
    )
    return suitable.length >= count
  })
}
