import { type LoggedEvent, type Response, closeStarted, fail, hearActor, keepPartial } from './actors.js'
import { Broken, type Rule } from './rules.js'
import { type Call, type Question, type Run, ends, findSpent, hear, rests, spend, withCall } from './run.js'
import { end, isLate, isMissing, isPaused, refuse, rest, settle, wake } from './settle.js'

/** Who reports, where it has been asked, and which rule that is of. */
const actors: Record<string, [place: string, rule: Rule]> = {
  model: ['requesting', 'request'],
  conclusion: ['concluding', 'request'],
  inputShields: ['screeningInput', 'screening'],
  outputShields: ['screeningOutput', 'screening'],
  callShields: ['screeningCalls', 'screening'],
  resultShields: ['screeningResults', 'screening'],
  retrieval: ['retrieving', 'work'],
  fitting: ['fittingContext', 'work'],
  callGuards: ['consultingOnCalls', 'work'],
  resultGuards: ['consultingOnResults', 'work'],
  backOff: ['backingOff', 'work'],
  tools: ['executing', 'work'],
}

const atWork = ['dispatching', 'executing', 'screeningCalls', 'screeningResults', 'consultingOnResults']
/** The runs that are possible after an event; none of them is where it cannot come. */
export function take(run: Run, event: LoggedEvent): Run[] {
  const now = event.now ?? 0
  const [, outcome, actor = ''] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(event.type) ?? []
  if (ends.includes(run.place))
    throw new Broken('end', `The run has ended in ${run.place}, and ${event.type} comes.`)
  checkWithheld(run, event)
  if (outcome === undefined) return tell(run, event, now).flatMap((next) => settle(next, now))
  const [place, rule] = actors[actor] ?? ['', 'known']
  if (run.place !== place) throw new Broken(rule, `${event.type} comes while the run stands in ${run.place}.`)
  const next =
    outcome === 'done' || actor === 'tools' ? hearActor(run, actor, event, now) : fail(run, actor, event, now)
  return next.flatMap((one) => settle(one, now))
}

/** Logs of the first versions have no marks: `marks` is a feature that the reader of a log switches on. */
function checkWithheld(
  { setup: { features } }: Run,
  { type, withheld, output, ...event }: LoggedEvent,
): void {
  const { inputShields, outputShields, callShields, resultShields } = features
  const isAnswer = /done\.actor\.(model|conclusion)$/.test(type)
  const hasCalls = isAnswer && (output as { response: Response }).response.toolCalls.length > 0
  const isDue =
    (isAnswer && (outputShields || (callShields && hasCalls))) ||
    (type === 'APPROVE' && callShields && event.arguments !== undefined) ||
    (['TOOL_RESULT', 'TOOL_OUTPUT'].includes(type) && resultShields) ||
    (type === 'REJECT' && (inputShields || resultShields) && event.why !== '') ||
    (['STEER', 'REPLY'].includes(type) && inputShields)
  if (isDue && !withheld && features['marks']) throw new Broken('withheld', `${type} is not marked.`)
}

/** What people and programs say, and what happens to the run as a whole. */
function tell(run: Run, event: LoggedEvent, now: number): Run[] {
  const { type, partial } = event
  const cut = (): Run => keepPartial(spend(run, partial?.usage), partial?.text)
  const steered = { ...run, steering: run.steering + 1 }
  const unpaused = {
    ...run,
    pausing: false,
    calls: run.calls.map((c) => (isPaused(c) ? { ...c, needs: 'nobody' } : c)),
  }
  const goOn = (paused: Run, asks: number): Run[] => {
    if (run.calls.some(isPaused)) return [{ ...wake(paused, 'dispatching', now), calls: unpaused.calls }]
    return [{ ...wake(paused, 'checkingLimits', now), pausing: false, numbered: run.numbered + asks }]
  }
  switch (type) {
    case 'CANCEL':
      return end(cut(), 'CANCELLED', 'cancelled')
    case 'STORE_FAILED':
      return end(cut(), 'ERROR', 'store_error')
    case 'DEADLINE':
      if (!isLate(run, now))
        throw new Broken('deadline', `It passes at ${now}, and the run has time until ${run.deadline}.`)
      return end(cut(), 'TIMED_OUT', 'timeout')
    case 'LEFT': {
      const left = ({ id }: Call): boolean => event.unbegun?.includes(id) === true
      return [
        {
          ...spend(run, event.usage),
          calls: run.calls.map((c) => (left(c) && !c.done ? { ...c, started: false } : c)),
        },
      ]
    }
    case 'RESUMED':
      return resumeElsewhere(run, event, now)
    case 'PAUSE':
      if (run.place === 'backingOff') return rest(run, 'PAUSED', 'paused', now)
      return [run.place === 'PAUSED' ? run : { ...run, pausing: true }]
    case 'RESUME': {
      // After the answer of a run that a guard has stopped, a message of the loop’s own asks the model to go on.
      if (run.place === 'PAUSED') return run.stop === null ? goOn(run, 0) : [...goOn(run, 1), ...goOn(run, 0)]
      if (!run.pausing) throw new Broken('control', `The run is resumed in ${run.place}, and does not pause.`)
      return [unpaused]
    }
    case 'STEER':
      if (run.place === 'message') return [wake(steered, 'checkingLimits', now)]
      return run.place === 'PAUSED' ? goOn(steered, 0) : [steered]
    case 'REPLY':
      if (run.place !== 'message')
        throw new Broken('control', `A reply comes while the run stands in ${run.place}.`)
      return [hear(wake(run, '', now), event.messages?.length ?? 0)]
    case 'APPROVE':
    case 'REJECT':
    case 'TOOL_OUTPUT':
      return answer(run, event, now)
    case 'TOOL_RESULT':
    case 'CHILD_USAGE':
    case 'CHILD_RESTS':
    case 'TOOLS_LOADED':
      return reportCall(run, event)
    case 'BATCH_DONE':
      if (run.place !== 'executing')
        throw new Broken('work', `A batch is done while the run stands in ${run.place}.`)
      return closeStarted(run)
    default:
      throw new Broken('known', `There is no event ${type}.`)
  }
}

/** A call that ran as the process died runs again only where its tool may run twice. */
function resumeElsewhere(run: Run, { tools: after }: LoggedEvent, now: number): Run[] {
  // The run was paused before the process that resumes it has begun.
  if (run.place === 'PAUSED') return [run]
  if (rests.includes(run.place)) throw new Broken('resumed', `The run rests in ${run.place}.`)
  if (isLate(run, now)) return end(run, 'TIMED_OUT', 'timeout')
  const { tools, config } = run.setup
  const isSafe = (by: Run['setup']['tools'], name: string): boolean =>
    Object.hasOwn(by, name) && [by[name]?.readOnly, by[name]?.idempotent, by[name]?.delegate].includes(true)
  const isInDoubt = ({ name, started, done, unloaded }: Call): boolean =>
    started &&
    !done &&
    !unloaded &&
    Object.hasOwn(tools, name) &&
    !(isSafe(tools, name) && isSafe(after ?? tools, name))
  const asks = config.toolCalls.onInterrupted === 'approval'
  const fate = asks ? { started: false, needs: 'approval' } : { done: true, failed: true, perhaps: false }
  const isBatch = atWork.includes(run.place)
  const calls = isBatch ? run.calls.map((call) => (isInDoubt(call) ? { ...call, ...fate } : call)) : run.calls
  const setup = { ...run.setup, tools: after ?? tools }
  return [{ ...run, setup, calls, place: run.place === 'executing' ? 'dispatching' : run.place }]
}

/** A person approves or rejects a call, or a client returns the result of its own. */
function answer(run: Run, event: LoggedEvent, now: number): Run[] {
  const { type, callId = '', messageId } = event
  const who = type === 'TOOL_OUTPUT' ? 'client' : 'approval'
  const call = run.calls.find(({ id }) => id === callId)
  const above = call ?? run.calls.find((one) => isMissing(one, who) && callId.startsWith(`${one.id}/`))
  const asked = call ? undefined : above?.questions?.find((one) => `${above.id}/${one.callId}` === callId)
  if (call?.done || asked?.answer)
    throw new Broken('oneAnswer', `${callId} has its answer, and another one comes.`)
  if (!above || !(call ? call.needs === who && !call.unchecked : asked?.needs === who))
    throw new Broken('question', `${type} answers ${callId}, which asks for none.`)
  const asking = `m${run.batch}${asked?.messageId === undefined ? '' : `/${asked.messageId}`}`
  if (messageId !== undefined && messageId !== asking)
    throw new Broken(
      'question',
      `${type} is for a call of ${messageId}, and ${asking} is the message that asks.`,
    )
  const open = run.calls.filter((one) => isMissing(one, who))
  const missing = open.filter((one) => one !== above)
  const isLast = missing.length === 0 && (call !== undefined || countOpen(above, who) === 1)
  const next = {
    ...run,
    calls: run.calls.map((one) => (one === above ? toAnswered(run, one, event, asked) : one)),
  }
  if (run.place === 'screeningResults' || atWork.includes(run.place)) return [next]
  if (who === 'client' && run.place === 'approval') return [next]
  if (isLast) return [wake(next, 'dispatching', now)]
  const others = missing.map(({ id }) => id)
  const isOnlyOther = others.length > 0 && (call !== undefined || countOpen(above, who) === 1)
  const left = isOnlyOther ? refuse(next, ({ id }) => others.includes(id), 'dispatching') : []
  return [next, ...left.map((one) => wake(one, 'dispatching', now))]
}

const countOpen = ({ questions }: Call, who: string): number =>
  (questions ?? []).filter((one) => !one.answer && one.needs === who).length

function toAnswered({ setup: { features } }: Run, call: Call, event: LoggedEvent, asked?: Question): Call {
  if (asked) {
    const questions = (call.questions ?? []).map((one) =>
      one === asked ? { ...one, answer: event.type } : one,
    )
    return { ...call, questions, needs: questions.every((one) => one.answer) ? 'nobody' : 'child' }
  }
  const live = { ...call, perhaps: false }
  const isEdited = event.arguments !== undefined
  if (event.type === 'TOOL_OUTPUT')
    return {
      ...live,
      done: true,
      failed: event.isError === true,
      unscreened: features['resultShields'] === true,
    }
  if (event.type === 'REJECT')
    return { ...live, done: true, failed: true, unscreened: event.withheld === true }
  const unchecked = isEdited && features['callShields'] === true && event.withheld === true
  return { ...live, needs: 'nobody', unchecked: call.unchecked || unchecked }
}

/** A call that runs has a result, or its sub-agent has spent something or rests. */
function reportCall(run: Run, event: LoggedEvent): Run[] {
  const { type, callId = '', result } = event
  const call = run.calls.find(({ id }) => id === callId)
  if (call?.done) throw new Broken('oneAnswer', `Call ${callId} has its result, and ${type} comes.`)
  if (call && !call.started && call.needs !== 'nobody')
    throw new Broken('approval', `Call ${callId} waits for its ${call.needs}, and ${type} comes.`)
  if (!call?.started || run.place !== 'executing')
    throw new Broken('callStart', `${type} comes for call ${callId}, which does not run.`)
  if (type === 'TOOLS_LOADED')
    return [{ ...run, loaded: [...new Set([...run.loaded, ...(event.names ?? [])])] }]
  const paid = spend(run, type === 'CHILD_RESTS' ? null : event.usage)
  const isLoading = result?.status === 'not_loaded'
  if (type === 'TOOL_RESULT' && (call.unloaded ? result?.status === 'ok' : isLoading))
    throw new Broken('loaded', `The result of call ${callId} is ${result?.status}.`)
  const isSpent = paid !== run
  if (type === 'CHILD_USAGE') return isSpent ? exceedOr(paid, [paid]) : [paid]
  const ended = {
    done: true,
    failed: result?.status !== 'ok' && !call.unloaded,
    unscreened: run.setup.features['resultShields'] === true,
  }
  const resting = { started: false, needs: 'child', questions: event.questions ?? [] }
  const next = withCall(paid, callId, { perhaps: false, ...(type === 'TOOL_RESULT' ? ended : resting) })
  const isHopeless = ['provider_quota', 'provider_config'].includes(result?.child?.code ?? '')
  if (
    isHopeless &&
    result?.child?.state === 'ERROR' &&
    run.setup.config.guardrails['terminalDelegation'] !== null
  )
    return [{ ...next, place: 'doomed' }]
  const isRunning = ({ started, done }: Call): boolean => started && !done
  const onwards = next.calls.some(isRunning) ? [next, ...refuse(next, isRunning, 'dispatching')] : []
  const after = onwards.length > 0 ? onwards : [{ ...next, place: 'dispatching' }]
  return isSpent ? exceedOr(paid, after) : after
}

const exceedOr = (run: Run, onwards: Run[]): Run[] => {
  const reason = findSpent(run)
  return reason === null ? onwards : end(run, 'BUDGET_EXCEEDED', reason)
}
