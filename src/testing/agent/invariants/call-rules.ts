import type { AgentContext } from '../../../../machines/agent/context.js'
import { isAnsweredBy } from '../../../../machines/agent/sub-agent-questions.js'
import { listAnswerableCalls, listPendingCalls } from '../../../../machines/agent/to-result.js'
import { findSpeaker } from '../../../../machines/agent/messages.js'
import { findActiveSkills } from '../../../../machines/agent/skills.js'
import type { PendingCall } from '../../../../machines/agent/run-result.js'
import { isRunnable, type BatchCall } from '../../../../machines/agent/batch-calls.js'
import {
  type AgentInvariant,
  listAnnounced,
  type Change,
  listOpenCalls,
  createRule,
  hasStarted,
} from './invariant-rule.js'

export const callRules: readonly AgentInvariant[] = [
  createRule('only whole calls that wait for no answer are started, and all of them', (change) => {
    const { after } = change
    if (!hasStarted(change, 'runTools')) return null
    const open = after.calls.filter(({ result }) => result === undefined)
    if (after.response !== 'calls') return `the answer was ${after.response}`
    if (after.verdict) return `a guard has halted the run (${after.verdict.guard})`
    const wrong = open.filter((call) => isRunnable(call) !== (call.started === true))
    if (wrong.length > 0) return `call ${wrong.map(({ id }) => id).join()} should not stand as it does`
    return !open.some(({ started }) => started) && 'there is nothing to run'
  }),
  createRule('calls that wait for no answer run before a question is asked', ({ before, after }) => {
    const isAsking = after.state === 'WAITING_FOR_INPUT' && before?.state !== 'WAITING_FOR_INPUT'
    const runnable = isAsking ? listRunnable(after) : []
    return runnable.length > 0 && `${runnable.join()} could run`
  }),
  createRule('calls that can run have run before shields look at the results of the others', (change) => {
    const runnable = hasTakenBranch(change, 'hasResultsToScreen') ? listRunnable(change.after) : []
    return runnable.length > 0 && `${runnable.join()} could run`
  }),
  createRule(
    'shields look anew when a person hands in one more result, or refuses one more call',
    (change) => {
      const { event, state, transitions } = change
      const isAnswer = event.type === 'TOOL_OUTPUT' || event.type === 'REJECT'
      const isOneMore = isAnswer && state === 'WAITING_FOR_TOOL.screeningResults'
      return isOneMore && transitions.length > 0 && !hasStarted(change, 'screenResults') && 'they do not'
    },
  ),
  createRule('shields look at edited arguments once each question is answered, and no sooner', (change) => {
    const calls = hasTakenBranch(change, 'hasCallsToScreen') ? listAnswerableCalls(change.after) : []
    const asked = calls.filter(({ needs }) => needs === 'approval').map(({ callId }) => callId)
    return asked.length > 0 && `${asked.join()} waits for an approval`
  }),
  createRule('no call is started twice, unless the run is resumed', (change) => {
    const { event, before, after } = change
    if (!hasStarted(change, 'runTools') || event.type === 'RESUMED') return null
    const again = after.calls.find(
      ({ id, result, started }) => !result && started && findCall(before?.calls, id)?.started,
    )
    return again && `'${again.id}' is`
  }),
  createRule('a resumed run starts no call again that may not run twice', (change) => {
    const { event, before, after } = change
    if (!hasStarted(change, 'runTools') || event.type !== 'RESUMED') return null
    const again = after.calls.find(({ id, name, result, started, unloaded, handle }) => {
      // A name without a tool executes nothing.
      const isCall = !unloaded && Object.hasOwn(after.tools, name)
      const isAgain = started && !result && isCall && findCall(before?.calls, id)?.started
      const { readOnly, idempotent, delegate, keepsHandle } = after.tools[name] ?? {}
      return isAgain && !readOnly && !idempotent && !delegate && !(keepsHandle && handle !== undefined)
    })
    return again && `'${again.id}' is started again`
  }),
  createRule('what is loaded stays loaded, and only a call that runs loads more', (change) => {
    const { event, before, after } = change
    const then = before?.loaded ?? after.loaded
    if (then.some((name, i) => after.loaded[i] !== name)) return `${then.join()} was loaded`
    const added = after.loaded.slice(then.length)
    if (added.length === 0) return null
    if (new Set(after.loaded).size < after.loaded.length) return `${added.join()} is loaded twice`
    if (event.type !== 'TOOLS_LOADED') return `${event.type} loads ${added.join()}`
    return !findCall(before?.calls, event.callId)?.started && `'${event.callId}' does not run`
  }),
  createRule('a call of a deferred tool that is not loaded costs no guard and no cap', (change) => {
    const { after } = change
    const unloaded = after.calls.filter((call) => call.unloaded)
    const wrong = unloaded.find(({ fact, result }) => fact !== undefined || result?.refusedBy !== undefined)
    if (wrong) return `'${wrong.id}' does`
    return (
      unloaded.length > 0 &&
      unloaded.length === after.calls.length &&
      after.verdict !== null &&
      'it halts the run'
    )
  }),
  createRule('what a call that runs changes of the skills is noted with it', ({ event, before, after }) => {
    if (event.type !== 'SKILL_CHANGED') return null
    const call = findCall(before?.calls, event.callId)
    if (!call?.started || call.result) return null
    return findCall(after.calls, event.callId)?.skill !== event.change && `'${call.id}' forgets it`
  }),
  createRule('a handle that a call keeps stays with it until its result', (change) => {
    const { event, before, after } = change
    const lost = before?.calls.find(({ id, handle, result }) => {
      const now = findCall(after.calls, id)
      const isKept = event.type === 'HANDLE_SAVED' && event.callId === id
      return now && !result && !isKept && JSON.stringify(now.handle) !== JSON.stringify(handle)
    })
    if (lost) return !isNewBatch(event.type) && `'${lost.id}' loses it`
    const call = event.type === 'HANDLE_SAVED' ? findCall(before?.calls, event.callId) : undefined
    if (event.type !== 'HANDLE_SAVED' || !call?.started || call.result) return null
    return findCall(after.calls, call.id)?.handle !== event.handle && `'${call.id}' forgets it`
  }),
  createRule('a call with a handle goes on in another process', (change) => {
    const { event, before, after } = change
    if (event.type !== 'RESUMED' || !before) return null
    const stopped = before.calls.find(({ id, name, started, result, handle }) => {
      const goesOn = [before.tools, after.tools].every((tools) => tools[name]?.keepsHandle)
      const now = findCall(after.calls, id)
      const isOpen = started && !result && handle !== undefined && goesOn
      return isOpen && now && (now.result !== undefined || now.needs !== 'nobody')
    })
    return stopped && after.state === 'WAITING_FOR_TOOL' && `'${stopped.id}' does not`
  }),
  createRule('the skills that hold are those that the results in the transcript note', ({ after }) => {
    // A handoff unloads all skills at the end of its batch.
    if (after.calls.some(({ handoff }) => handoff)) return null
    const noted = findActiveSkills(after.messages)
    return JSON.stringify(after.skills) !== JSON.stringify(noted) && `${noted.length} are noted`
  }),
  createRule('a call that runs and hands the conversation over is noted with it', (change) => {
    const { event, before, after } = change
    if (event.type !== 'HANDED_OFF') return null
    const call = findCall(before?.calls, event.callId)
    if (!call?.started || call.result) return null
    return findCall(after.calls, event.callId)?.handoff?.to !== event.to && `'${call.id}' forgets it`
  }),
  createRule('once a batch is over, the agent speaks that the transcript was last handed to', ({ after }) => {
    const speaker = findSpeaker(after.messages)
    return after.calls.length === 0 && after.speaker !== speaker && `it was handed to ${String(speaker)}`
  }),
  createRule(
    'an agent is told of as the one that speaks when it begins to, and has its own tools',
    (change) => {
      const { before, after } = change
      const told = listAnnounced(change, 'handed_off')
      const then = before?.speaker ?? null
      if (told.length === 0) return then !== after.speaker && `${String(after.speaker)} speaks unannounced`
      const [{ callId, from, to }] = told as [(typeof told)[number]]
      if (told.length > 1 || from !== then || to !== after.speaker)
        return `it is told from ${String(from)} to ${to}`
      const own = findCall(before?.calls, callId)?.handoff?.tools
      return own !== undefined && after.tools !== own && 'it has the tools of the former agent'
    },
  ),
  createRule('one answer hands the conversation over once', ({ after, before, event }) => {
    if (isNewBatch(event.type) || !before) return null
    const isHandoff = ({ name, started }: BatchCall): boolean =>
      started === true && after.tools[name]?.handoff === true
    const running = after.calls.filter(isHandoff)
    return running.length > 1 && `${running.map(({ id }) => id).join()} were started`
  }),
  createRule('a loaded skill refuses the calls of tools that it does not allow', ({ after, transitions }) => {
    if (!transitions.some((id) => id.startsWith('RUNNING.judging.judgingCalls'))) return null
    const isForbidden = ({ name, result }: BatchCall): boolean =>
      !result &&
      !after.tools[name]?.skill &&
      after.skills.some(({ allowedTools }) => allowedTools?.includes(name) === false)
    const wrong = after.calls.find(isForbidden)
    return wrong && `'${wrong.id}' is not refused`
  }),
  createRule('a call that the plan of its step leaves out never runs', (change) => {
    const { after } = change
    const { plan, steps } = after
    if (!hasStarted(change, 'runTools') || plan?.step !== steps || !plan.tools) return null
    const wrong = after.calls.find(({ name, started }) => started && !plan.tools?.includes(name))
    return wrong && `'${wrong.id}' runs`
  }),
  createRule('the author is asked about each step once, and before its request', (change) => {
    const { after, before, event } = change
    if (!after.features.prepareStep) return hasStarted(change, 'prepareStep') && 'nothing was to be asked'
    const isPlanned = after.plan?.step === after.steps + 1
    if (hasStarted(change, 'prepareStep')) return isPlanned && 'the step has a plan'
    if (event.type === ('xstate.done.actor.plan' as string) && before && change.transitions.length > 0)
      return after.plan?.step !== before.steps + 1 && 'the plan is lost'
    const isAsked = hasStarted(change, 'requestModel') && change.state === 'RUNNING.asking.requesting'
    return isAsked && !isPlanned && 'a request is made without a plan'
  }),
  createRule('a call that needs approval runs only when it was approved', ({ before, after, event }) => {
    const freed = after.calls.filter(
      ({ id, needs }) => needs === 'nobody' && findCall(before?.calls, id)?.needs === 'approval',
    )
    const wrong = freed.find(({ id }) => !(event.type === 'APPROVE' && event.callId === id))
    return wrong && !isNewBatch(event.type) && `'${wrong.id}' was freed by ${event.type}`
  }),
  createRule('an answer of a person or a client counts for its call', (change) => {
    const { event, before } = change
    if (!('callId' in event)) return null
    const call = findCall(before?.calls, event.callId)
    if (call === undefined || call.result || change.transitions.length === 0) return null
    const now = findCall(change.after.calls, event.callId)
    const told = listAnnounced(change, 'tool_result').find(({ callId }) => callId === event.callId)
    if (now?.unscreenedResult) return told && 'its result is told before a shield has seen it'
    switch (event.type) {
      case 'APPROVE':
        if (now?.needs !== 'nobody') return 'it is not approved'
        return event.arguments !== undefined && now.arguments !== event.arguments && 'the edit is lost'
      case 'REJECT':
        return !(told?.status === 'rejected' && told.content.includes(event.why)) && 'it is not rejected'
      case 'TOOL_OUTPUT':
        return !(told?.status === 'ok' && told.content === event.content) && 'its output is lost'
      case 'TOOL_RESULT':
        return told?.content !== event.result.content && 'its result is lost'
      default:
        return null
    }
  }),
  createRule(
    'an answer is taken from the one that a call waits for, and only for calls that wait',
    (change) => {
      const { event, before, transitions } = change
      const needs = { APPROVE: 'approval', REJECT: 'approval', TOOL_OUTPUT: 'client' }[event.type as string]
      if (needs === undefined || !('callId' in event) || !before) return null
      const isAsked = listAnswerableCalls(before).some(
        (one) => one.callId === event.callId && isAnsweredBy(one.needs, needs),
      )
      return !isAsked && transitions.length > 0 && `'${event.callId}' does not wait for that`
    },
  ),
  createRule('a result is never replaced', ({ before, after, event }) => {
    if (isNewBatch(event.type)) return null
    const changed = before?.calls.find(
      ({ id, result, unscreenedResult }) =>
        result &&
        !unscreenedResult &&
        findCall(after.calls, id) &&
        findCall(after.calls, id)?.result !== result,
    )
    return changed && `that of '${changed.id}' was`
  }),
  createRule('when the runner ends, what it had started is closed, and nothing else', (change) => {
    const { event, before, after } = change
    if (
      !/^(BATCH_DONE|xstate\.(done|error)\.actor\.tools)$/.test(event.type) ||
      change.transitions.length === 0
    )
      return null
    const told = listAnnounced(change, 'tool_result').map(({ callId }) => callId)
    const left = before?.calls.filter(({ started, result }) => started && !result).map(({ id }) => id) ?? []
    if (left.some((id) => !told.includes(id))) return `${left.join()} stay open`
    const others = listOpenCalls(before?.calls.filter(({ started }) => !started))
    return (
      after.state === 'WAITING_FOR_INPUT' && others.some((id) => told.includes(id)) && 'others were closed'
    )
  }),
  createRule('each approval is asked for once', (change) => {
    const asked = listAnnounced(change, 'approval_requested').map(({ callId }) => callId)
    const isEntered =
      change.state === 'WAITING_FOR_INPUT.approval' && change.before?.state !== 'WAITING_FOR_INPUT'
    const open = isEntered ? listAsked('approval', change.after) : []
    return asked.sort().join() !== open.sort().join() && `asked for ${asked.join()}, open are ${open.join()}`
  }),
  createRule('what a tool asks is told whenever the run comes to rest for people', (change) => {
    const asked = listAnnounced(change, 'elicitation_requested').map(({ callId }) => callId)
    const open = listAsked('elicitation', change.after)
    const isEntered =
      change.after.state === 'WAITING_FOR_INPUT' && change.before?.state !== 'WAITING_FOR_INPUT'
    const isWrong = asked.some((id) => !open.includes(id)) || (isEntered && asked.length !== open.length)
    return isWrong && `told are ${asked.join()}, open are ${open.join()}`
  }),
  createRule('a run waits only while a call waits for an answer', ({ state, after }) => {
    if (state === 'WAITING_FOR_INPUT.approval')
      return listAsked('approval', after).length === 0 && 'no call waits'
    return (
      state === 'WAITING_FOR_INPUT.toolOutput' &&
      listAsked('client', after).length + listAsked('elicitation', after).length === 0 &&
      'no call waits'
    )
  }),
  createRule(
    'a sub-agent that rests keeps its call open, and goes on only when it has all its answers',
    (change) => {
      const { event, before, after } = change
      if (event.type === 'CHILD_WAITING' && change.transitions.length > 0) {
        const call = findCall(after.calls, event.callId)
        const isKept = call?.needs === 'child' && !call.result && !call.started
        return !isKept && `'${event.callId}' does not rest`
      }
      const freed = after.calls.filter(
        ({ id, needs }) => needs === 'nobody' && findCall(before?.calls, id)?.needs === 'child',
      )
      const early = freed.find(({ questions = [] }) => questions.some(({ answer }) => answer === undefined))
      if (early) return `'${early.id}' has questions left`
      const wrong = freed.find(({ questions = [] }) =>
        questions.length === 0 ? !/^(RESUME|STEER)$/.test(event.type) : !('callId' in event),
      )
      return wrong && !isNewBatch(event.type) && `'${wrong.id}' was freed by ${event.type}`
    },
  ),
  createRule('an answer to a sub-agent is kept for it, and is no result of its call', (change) => {
    const { event, before, after, transitions } = change
    const answers = /^(APPROVE|REJECT|TOOL_OUTPUT)$/.test(event.type) && 'callId' in event
    if (!answers || !event.callId.includes('/') || transitions.length === 0) return null
    const [id, inside] = event.callId.split('/')
    const kept = (calls: readonly BatchCall[] = []): unknown =>
      findCall(calls, id ?? '')?.questions?.find(({ callId }) => callId === inside)?.answer
    if (kept(before?.calls) !== undefined) return 'it was answered before'
    if (listAnnounced(change, 'tool_result').length > 0) return 'it is told as a result'
    return kept(after.calls) === undefined && 'it is lost'
  }),
]

function hasTakenBranch({ transitions }: Change, guard: string): boolean {
  return transitions.some((id) => id.startsWith(`WAITING_FOR_TOOL.dispatching: always [${guard}]`))
}

function findCall(calls: readonly BatchCall[] | undefined, callId: string): BatchCall | undefined {
  return calls?.find(({ id }) => id === callId)
}

function listRunnable({ calls }: AgentContext): string[] {
  return calls.filter(isRunnable).map(({ id }) => id)
}

/** Includes the questions of sub-agents. */
function listAsked(needs: PendingCall['needs'], context: AgentContext): string[] {
  return listPendingCalls(context)
    .filter((one) => one.needs === needs)
    .map(({ callId }) => callId)
}

function isNewBatch(type: Change['event']['type']): boolean {
  return type === 'xstate.done.actor.model' || type === 'xstate.done.actor.conclusion'
}
