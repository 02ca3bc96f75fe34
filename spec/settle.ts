import { capCalls } from './caps.js'
import { type Call, type Run, findSpent } from './run.js'

const go = (run: Run, place: string, patch: Partial<Run> = {}): Run[] => [{ ...run, ...patch, place }]

const isCap = (stop: string | null): stop is string => stop === 'max_steps' || stop === 'max_tool_calls'

/** The run ends. Calls that are open are closed with it. */
export const end = (run: Run, place: string, reason: string | undefined, patch: Partial<Run> = {}): Run[] =>
  go(run, place, {
    calls: [],
    pausing: false,
    ...patch,
    reason,
    stop: isCap(run.stop) ? null : run.stop,
  })

/** The run rests, and its clock stands still. */
export function rest(
  run: Run,
  place: string,
  reason: string | undefined,
  now: number,
  calls = run.calls,
): Run[] {
  const timeLeft = run.deadline === null ? null : Math.max(0, run.deadline - now)
  return go(run, place, { reason, timeLeft, calls, pausing: place !== 'PAUSED' && run.pausing })
}

/** The run goes on from a rest, with the time that was left. */
export function wake(run: Run, place: string, now: number): Run {
  const deadline = run.timeLeft === null ? run.deadline : now + run.timeLeft
  return { ...run, place, deadline, timeLeft: null, reason: null }
}

const isAtCap = ({ setup: { config }, steps }: Run): boolean => steps >= (config.limits.maxSteps ?? Infinity)
export const isLate = ({ timeLeft, deadline }: Run, now: number): boolean =>
  timeLeft === null && deadline !== null && now >= deadline
const mayConclude = (run: Run): boolean => run.setup.config.limits.onLimit === 'conclude' && !findSpent(run)
const exceed = (run: Run): Run[] => end(run, 'BUDGET_EXCEEDED', findSpent(run) ?? 'token_budget')

/** Guards stop the run: at once, or after the model’s last words. */
export function halt(run: Run, stop: string, lastWords: boolean): Run[] {
  const halted = { ...run, stop, reason: undefined, calls: [], place: 'stopping' }
  const concludes = stop === 'pause' ? lastWords && !findSpent(run) && !isAtCap(run) : mayConclude(run)
  return concludes ? go(halted, 'concluding') : [halted]
}

const notGuards = [
  'maxTokensRecoveries',
  'reserveTokens',
  'reserveCostFraction',
  'emptyAnswer',
  'maxRepeatedToolSteps',
]
const isWatched = ({ setup }: Run): boolean =>
  Object.entries(setup.config.guardrails).some(([key, value]) => value !== null && !notGuards.includes(key))
const haltSomehow = (run: Run): Run[] =>
  [halt(run, 'error', false), halt(run, 'pause', true), halt(run, 'pause', false)].flat()

const afterInput = ({ setup, recalled }: Run): string =>
  setup.features['retrieval'] && !recalled ? 'retrieving' : 'checkingLimits'

/** Missing answers of people, or of clients: to calls of the run, and to those of its sub-agents. */
export const isMissing = ({ done, needs, questions }: Call, who: string): boolean =>
  !done &&
  (needs === who || (needs === 'child' && (questions ?? []).some((one) => !one.answer && one.needs === who)))
export const isPaused = ({ done, needs, questions }: Call): boolean =>
  !done && needs === 'child' && (questions ?? []).length === 0

/** What comes next in a batch, the first that has a call. */
const duties: [place: string, isDue: (call: Call) => boolean][] = [
  ['executing', ({ done, needs, unchecked }) => !done && needs === 'nobody' && !unchecked],
  ['screeningResults', ({ unscreened }) => unscreened],
  ['approval', (call) => isMissing(call, 'approval')],
  ['screeningCalls', ({ done, unchecked }) => !done && unchecked],
  ['toolOutput', (call) => isMissing(call, 'client')],
  ['PAUSED', isPaused],
]

/** Goes on as if guards had refused these calls, which is so if all of them may have been. */
export function refuse(run: Run, isDue: (call: Call) => boolean, place: string): Run[] {
  if (run.calls.some((call) => isDue(call) && !call.perhaps)) return []
  const refused = { done: true, failed: true, perhaps: false, unchecked: false }
  return go(run, place, { calls: run.calls.map((call) => (isDue(call) ? { ...call, ...refused } : call)) })
}

/** What follows by itself in a place where nothing is waited for. */
const moves: Record<string, (run: Run, now: number) => Run[]> = {
  starting: (run) => go(run, run.setup.features['inputShields'] ? 'screeningInput' : afterInput(run)),
  screened: (run) => go(run, afterInput(run)),
  checkingLimits: (before, now) => {
    const { features } = before.setup
    const told = before.steering > 0 && !(features['inputShields'] && isAtCap(before)) ? before.steering : 0
    const uncleared = features['inputShields'] ? before.uncleared + told : 0
    const run = {
      ...before,
      steering: before.steering - told,
      numbered: before.numbered + told,
      uncleared,
      stop: null,
    }
    if (isLate(run, now)) return end(run, 'TIMED_OUT', 'timeout')
    if (run.pausing) return rest(run, 'PAUSED', 'paused', now)
    if (isAtCap(run))
      return mayConclude(run)
        ? go(run, 'concluding', { stop: 'max_steps' })
        : end(run, 'MAX_STEPS', 'max_steps')
    if (run.callCounts?.isOver)
      return mayConclude(run)
        ? go(run, 'concluding', { stop: 'max_tool_calls' })
        : end(run, 'MAX_STEPS', 'max_tool_calls')
    if (findSpent(run)) return exceed(run)
    if (uncleared > 0) return go(run, 'screeningInput')
    return go(run, features['fitting'] ? 'fittingContext' : 'fitted')
  },
  fitted: (run, now) =>
    findSpent(run)
      ? exceed(run)
      : go(run, run.attempt > 1 && now < run.backOffUntil ? 'backingOff' : 'requesting'),
  answered: (run) => go(run, run.stop === null ? 'accounting' : 'stopping'),
  accounting: (run) => {
    const { kind, setup } = run
    const { budget, guardrails, completion } = setup.config
    const isInvalid = run.problem !== null && (kind === 'answer' || kind === 'empty')
    const isNatural = (kind === 'answer' && !isInvalid) || kind === 'refusal' || kind === 'filtered'
    const goesOn = kind === 'calls' ? budget.finishBatch : isNatural && budget.onOvershoot === 'complete'
    if (findSpent(run) && !goesOn) return exceed(run)
    if (kind === 'calls') return go(run, 'judgingCalls')
    const again = (patch: Partial<Run>): Run[] => go(run, 'checkingLimits', { calls: [], ...patch })
    const numbered = run.numbered + 1
    if (kind === 'truncated' || kind === 'truncatedCalls') {
      if (run.recoveries < guardrails.maxTokensRecoveries)
        return again({ recoveries: run.recoveries + 1, numbered })
      if (kind === 'truncatedCalls') return end(run, 'ERROR', 'max_tokens')
    }
    if (kind === 'empty' && guardrails.emptyAnswer !== null) {
      const { reprompts, retries } = guardrails.emptyAnswer
      if (run.batchFailed && run.reprompts < reprompts)
        return again({ reprompts: run.reprompts + 1, numbered })
      if (!run.batchFailed && run.emptyRetries < retries) return again({ emptyRetries: run.emptyRetries + 1 })
      return end(run, 'ERROR', 'empty_response')
    }
    if (isInvalid && run.outputRepairs < completion.maxOutputRepairs)
      return again({ outputRepairs: run.outputRepairs + 1, numbered })
    if (isInvalid) return end(run, 'ERROR', 'invalid_output')
    if (run.steering > 0) return again({})
    if (setup.config.interactive) return go(run, 'waiting')
    const reasons: Record<string, string> = {
      refusal: 'refusal',
      filtered: 'content_filter',
      truncated: 'max_tokens',
    }
    return end(run, 'COMPLETED', reasons[kind ?? ''] ?? 'end_turn')
  },
  waiting: (run, now) => rest(run, 'message', 'message', now, []),
  judgingCalls: (asked) => {
    const run = capCalls(asked)
    // A guard refuses what it has seen before: in earlier answers of the turn, or in another call of this one.
    const hasSeen = run.steps > 1 || new Set(run.calls.map(({ name }) => name)).size < run.calls.length
    const calls = run.calls.map((call) => ({
      ...call,
      perhaps: !call.done && !call.unloaded && isWatched(run) && hasSeen,
    }))
    const isCounted = ({ done, unloaded }: Call): boolean => !done && !unloaded
    const next = run.setup.features['callShields'] ? 'screeningCalls' : 'dispatching'
    const onwards =
      run.setup.features['userGuards'] && run.calls.some(isCounted)
        ? ['consultingOnCalls', ...(isWatched(run) ? [next] : [])]
        : [next]
    return [
      ...onwards.flatMap((place) => go(run, place, { calls })),
      ...(isWatched(run) ? haltSomehow(run) : []),
    ]
  },
  dispatching: (run, now) => {
    const [place, isDue] = duties.find(([, isIt]) => run.calls.some(isIt)) ?? ['judgingResults', () => false]
    if (place === 'judgingResults') return go(run, place)
    const asked = { approval: 'approval', toolOutput: 'tool_output', PAUSED: 'paused' }[place]
    const started = run.calls.map((call) => (isDue(call) ? { ...call, started: true } : call))
    const there = asked
      ? rest(run, place, asked, now)
      : go(run, place, place === 'executing' ? { calls: started } : {})
    return [...there, ...refuse(run, isDue, 'dispatching')]
  },
  judgingResults: (run) => {
    const judged = { ...run, batchFailed: run.calls.some((call) => call.failed) }
    const onwards =
      run.setup.features['userGuards'] && run.calls.some(({ unloaded }) => !unloaded)
        ? go(judged, 'consultingOnResults')
        : go(judged, 'batchOver')
    return isWatched(run) ? [...onwards, ...haltSomehow(judged)] : onwards
  },
  doomed: (run) => haltSomehow({ ...run, batchFailed: true }),
  batchOver: (run) => go(run, 'checkingLimits', { calls: [] }),
  stopping: (run, now) => {
    if (isCap(run.stop)) return end(run, 'MAX_STEPS', run.stop)
    return run.stop === 'pause' ? rest(run, 'PAUSED', undefined, now, []) : end(run, 'ERROR', undefined)
  },
}

/** The places that the run comes to rest, or to wait for something, in: several where a guard decides unseen. */
export function settle(run: Run, now: number): Run[] {
  const move = moves[run.place]
  return move ? move(run, now).flatMap((next) => settle(next, now)) : [run]
}
