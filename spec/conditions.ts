import {
  type Json,
  type Moment,
  type Run,
  type Verdict,
  due,
  findAsked,
  findOwn,
  isPast,
  isRest,
  isWatched,
  listLate,
  mayVote,
  spreadGrants,
} from './run.js'

const budgets = ['tokenBudget', 'outputTokens', 'costLimit']
const limits = ({ setup }: Run): Json => setup.config.limits
const repairs = ({ setup }: Run): Json => setup.config.guardrails.emptyAnswer

/** The conditions of the table. Conditions that are not here are delegated to `ask`, and undecided without it. */
export const conditions: Record<string, (run: Run, moment: Moment, of: string) => Verdict> = {
  mayBe: () => 'perhaps',
  has: ({ setup }, _, feature) => setup.features[feature] === true,
  is: ({ response }, _, kind) => response === kind,
  stopsWith: ({ stop }, _, what) => stop?.startsWith(what) === true,
  isStopping: ({ stop }) => stop !== null,
  isPausing: ({ pausing }) => pausing !== false,
  isRecalled: ({ recalled }) => recalled,
  isUnplanned: ({ setup, plan, steps }) => setup.features.prepareStep === true && plan?.step !== steps + 1,
  isSteered: ({ steering }) => steering > 0,
  isInteractive: ({ setup }) => setup.config.interactive,
  isResting: ({ place }) => isRest(place),
  isAtCap: (run) => run.steps >= (limits(run).maxSteps ?? Infinity),
  concludes: (run) => limits(run).onLimit === 'conclude',
  isSpent: (run, { ask }) => budgets.some((key) => limits(run)[key] > 0) && ask('isSpent', run),
  isLate: (run, { ask }) => limits(run).timeoutMs > 0 && ask('isLate', run),
  isOverCalls: (run, { ask }) => typeof limits(run).maxToolCalls === 'number' && ask('isOverCalls', run),
  mustWait: (run, { ask }) => run.attempt > 1 && ask('mustWait', run),
  /** The calls of an answer have unique ids, and each has an entry for the party that must act. */
  isSound: (_run, { event: { output } }) => {
    const ids = output.response.toolCalls.map(({ id }: Json) => id)
    return new Set(ids).size === ids.length && ids.every((id: Json, i: number) => output.calls[i]?.id === id)
  },
  hasText: (_run, { event: { output } }) => Boolean(output.response.text || output.response.refusal),
  hasCost: (_run, { event: { usage, error } }) => Boolean(usage ?? error?.usage),
  isOverflow: (_run, { event: { error } }) => error?.kind === 'context_overflow',
  isNearBudget: (run, { ask }) => limits(run).onNearBudget === 'conclude' && ask('isNearBudget', run),
  waitsForBudget: (_run, { event: { error } }) => error?.code === 'shared_budget' && error.wakeAt > 0,
  isRefusedByBudget: (_run, { event: { error } }) => /^(token|shared)_budget$/.test(error?.code),
  canLeaveOut: (run, { event: { error }, ask }) => Boolean(error?.refusal) && ask('isNewRefusal', run),
  mayRetry: ({ setup, attempt, rateLimits, resends }, { event: { error } }) => {
    const { maxAttempts, rateLimitAttempts, maxRetryAfterMs } = setup.config.retry
    if (error?.retryAfterMs > maxRetryAfterMs) return false
    if (error?.kind === 'rate_limit') return rateLimits + 1 < rateLimitAttempts
    return /^(transient|incomplete)$/.test(error?.kind) && attempt - rateLimits - resends < maxAttempts
  },
  isCut: ({ response }) => response === 'truncated' || response === 'truncatedCalls',
  mayRecover: ({ setup, recoveries }) => recoveries < setup.config.guardrails.maxTokensRecoveries,
  hasFailed: ({ lastBatchFailed }) => lastBatchFailed,
  mayReprompt: (run) => run.reprompts < (repairs(run)?.reprompts ?? 0),
  mayRetryEmpty: (run) => run.emptyRetries < (repairs(run)?.retries ?? 0),
  mindsEmpty: (run) => repairs(run) !== null,
  isInvalid: (run, { ask }) => /^(answer|empty)$/.test(run.response ?? '') && ask('isInvalid', run),
  mayRepair: ({ setup, outputRepairs }) => outputRepairs < setup.config.completion.maxOutputRepairs,
  /** Built-in guards leave no findings in the log. User guards log their findings. */
  isWatched: (run) => isWatched(run) && 'perhaps',
  consults: (run) => run.calls.some((call) => due['undecided']?.(call)) && (!isWatched(run) || 'perhaps'),
  isHalted: (_run, { event }) => event.output.findings.some(({ action }: Json) => action === 'halt'),
  some: ({ calls }, { now }, what) => calls.some((call) => due[what]?.(call, now)),
  cancels: ({ calls }, { now }) =>
    calls.some((call) =>
      listLate(call, now).some(({ limit, onExpiry }) => limit?.end === 2 || onExpiry === 'cancel'),
    ),
  /** Guards may have refused all the affected calls. */
  doubts: ({ calls }, { now }, what) => {
    const affected = calls.filter((call) => due[what]?.(call, now))
    return affected.length > 0 && affected.every(({ perhaps }) => perhaps) && 'perhaps'
  },
  /** A call of a deferred tool that is not loaded does not run. Only such a call loads a tool. */
  isStarted: ({ calls }, { event: { callId, result } }) => {
    const call = calls.find(({ id }) => id === callId)
    return call?.started === true && !call.done && result?.status !== (call.unloaded ? 'ok' : 'not_loaded')
  },
  /** No other call runs, or the other calls may have been refused. */
  isLast: ({ calls }, { event }) => {
    const others = calls.filter((call) => call.id !== event.callId && due['running']?.(call))
    return others.length === 0 || (others.every(({ perhaps }) => perhaps) && 'perhaps')
  },
  startsCalls: (run, { event: { tool, grant, by }, now }) => {
    const newGrant = { ...grant, tool, givers: [{ by }], speaker: run.setup.speaker }
    return spreadGrants({ ...run, grants: [newGrant] }, now).covered.size > 0
  },
  isGranted: (run, { now }) => spreadGrants(run, now).covered.size > 0,
  doubtsGranted: (run, { now }) => {
    const { covered } = spreadGrants(run, now)
    const affected = run.calls.filter(({ id }) => covered.has(id))
    return affected.length > 0 && affected.every(({ perhaps }) => perhaps) && 'perhaps'
  },
  /** No call runs or can run, because the grants of calls that had not started have ended. */
  isIdle: (run, { now }) =>
    !run.calls.some((call) => due['running']?.(call) || due['runnable']?.(call)) &&
    spreadGrants(run, now).covered.size === 0,
  isKnownGrant: ({ grants }, { event: { grant } }) => grants.some(({ id }) => id === grant),
  isOwn: (run, { event }) => event.callId !== undefined && findOwn(run, event)[0] !== undefined,
  hasGrant: ({ calls }, { event: { callId } }) =>
    calls.some(({ id, grant }) => id === callId && grant !== null),
  /** A sub-agent that failed permanently ends the run. */
  isHopeless: ({ setup }, { event: { result } }) =>
    /^ERROR provider_(quota|config)$/.test(`${result?.child?.state} ${result?.child?.code}`) &&
    setup.config.guardrails.terminalDelegation !== null,
  isTooLate: (run, { event, now }) => {
    const [call, question] = findAsked(run, event)
    return call !== undefined && isPast((question ?? call).expiresAt, now)
  },
  isAsked: (run, { event, now, ask }) => mayVote(run, event, now) && ask('isOfMessage', run) !== false,
}
