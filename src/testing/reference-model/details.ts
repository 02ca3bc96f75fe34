import {
  due,
  findAsked,
  type Call,
  type Json,
  type Moment,
  type Run,
  isEnd,
  isRest,
  isWatched,
} from '../../../spec/run.js'
import { type Details, type Row, Broken } from './judge-log.js'

interface Counts extends Sleep {
  run: Usage
  session: Usage
  lastMessageNumber: number
  batchNumber: number
  uncleared: number
  /** How many of the uncleared messages are steering from an earlier run. They come first, and do not end the run. */
  carried: number
  outputProblem: string | null
  /** The limit whose reserve is spent on the final answer. */
  near: string | null
  /** The deadline. It is suspended while a run rests. */
  deadline: number | null
  timeLeft: number | null
  backOffUntil: number
  callCounts: { calls: number; isOver: boolean; byTool: Record<string, number> } | null
  hosted: string[]
  skills: Skills
  speaker: string | null
  /** For each call of the last answer, the agent that takes over when the batch ends. */
  handoffs: Record<string, { to: string; tools: Json }>
  refused: Json[]
  /** Whether the run starts a branch, whose loaded skills are unknown. */
  isBranch: boolean
}

const countsOf = (run: Run): Counts => run.details
const withCounts = (run: Run, change: Partial<Counts>): Run => ({
  ...run,
  details: { ...countsOf(run), ...change },
})

/** Decides what the table in spec/ leaves open: budgets, clocks, call caps, and the verdicts of shields and guards. */
export const details: Details = {
  answers: {
    // Tools are tracked here. After a handoff, they are the tools of the active agent.
    hasOtherTools: () => false,
    isAsleep: (run, { now }) => isAsleep(countsOf(run), now),
    isForLater: (_run, moment) => isForLater(moment),
    isNearBudget: (run) => findNear(run.setup.config, countsOf(run)) !== null,
    isSpent: (run) => findSpent(run.setup.config, countsOf(run)) !== null,
    stopsWhenSpent: ({ response, setup, details: { outputProblem } }) => {
      const { finishBatch, onOvershoot } = setup.config.budget
      if (response === 'calls') return !finishBatch
      const isNatural = (response === 'answer' && outputProblem === null) || response === 'refusal'
      return !((isNatural || response === 'filtered') && onOvershoot === 'complete')
    },
    isLate: ({ details: { timeLeft, deadline } }, { now }) =>
      timeLeft === null && deadline !== null && now >= deadline,
    isNewRefusal: (run, { event: { error } }) =>
      !isOfQuestion(error.refusal) && !isKnownRefusal(countsOf(run), error.refusal),
    mustWait: (run, { now }) => now < countsOf(run).backOffUntil,
    isWaitOver: (run, { now }) => now >= countsOf(run).backOffUntil,
    isOverCalls: (run) => countsOf(run).callCounts?.isOver === true,
    isInvalid: (run) => countsOf(run).outputProblem !== null,
    isConsulted: ({ setup: { features, tools }, calls }) =>
      features.userGuards || features.stopWhen || (features.structuredOutput && endsRun(tools, calls)),
    isAnswered: ({ setup: { tools }, calls }, { event: { output } }) =>
      output?.stops === true || endsRun(tools, calls),
    isUnseen: (run) => countsOf(run).uncleared > 0,
    blocks: (run, { event }) => {
      const looks = looksOf(event)
      if (run.place !== 'screeningInput') return looks.some(isBlock)
      // Without a verdict, content is blocked.
      const { uncleared, carried } = countsOf(run)
      const isClear = (i: number): boolean => {
        const mine = looks.filter(({ index }) => index === i)
        return mine.length > 0 && !mine.some(isBlock)
      }
      return Array.from({ length: uncleared }, (_, i) => i < carried || isClear(i)).includes(false)
    },
    isOfMessage: (run, { event }) => {
      const [, question] = findAsked(run, event)
      const asking = `m${countsOf(run).batchNumber}${question?.messageId === undefined ? '' : `/${question.messageId}`}`
      return event.messageId === undefined || event.messageId === asking
    },
  },
  begin: ({ input, branch }, opened, before) => {
    const { timeoutMs } = input.config.limits
    const last: Partial<Counts> = before?.details ?? {
      session: opened.usage,
      lastMessageNumber: opened.messages?.length,
    }
    const skills = last.skills ?? readSkills(opened.messages ?? [])
    return {
      run: noUsage,
      session: last.session ?? noUsage,
      lastMessageNumber: (last.lastMessageNumber ?? 0) + input.input.length,
      batchNumber: 0,
      uncleared: input.features.inputShields ? input.input.length : 0,
      carried: input.input.filter(isCarried).length,
      outputProblem: null,
      near: null,
      deadline: timeoutMs > 0 ? input.now + timeoutMs : null,
      timeLeft: null,
      backOffUntil: 0,
      ...noSleep,
      callCounts: null,
      hosted: [],
      skills,
      speaker: input.speaker ?? null,
      handoffs: {},
      refused: last.refused ?? opened.refusals ?? [],
      isBranch: branch !== undefined && skills.history.length > 0,
    } satisfies Counts
  },
  /** Usage is counted before the event takes effect. */
  hear: (run, { event: { usage, partial, error, output } }) => {
    const cost = usage ?? partial?.usage ?? error?.usage ?? output?.response?.usage ?? output?.usage
    return cost ? withCounts(run, spend(countsOf(run), cost)) : run
  },
  move: (run, next, moment, row) => {
    if (countsOf(run).isBranch)
      return listBranches(countsOf(run).skills).map((skills) => withCounts(next, { skills, isBranch: false }))
    const done = settleSleep(run, settleCalls(run, count(run, next, moment, row)), moment, row)
    const { lastMessageNumber } = countsOf(done)
    // After a guard stopped the run, the loop may add a message that asks the model to continue.
    const isUnsure = row.event === 'RESUME' && row.place === 'PAUSED' && run.stop !== null
    return isUnsure && done.place !== 'dispatching'
      ? [done, withCounts(done, { lastMessageNumber: lastMessageNumber + 1 })]
      : [done]
  },
  read: (context) => ({
    ...context.usage,
    ...Object.fromEntries(compared.map((key) => [key, context[key] ?? null])),
    backOffUntil: context.backOffUntil,
    uncleared: listUncleared(context).length,
    carried: listUncleared(context).filter(isCarried).length,
    outputProblem: context.pendingAnswer?.outputProblem ?? context.outputProblem,
    near: /^(token_budget|cost_limit)$/.test(context.reason) ? context.reason : null,
    hosted: context.calls.filter(({ hosted }: Json) => hosted).map(({ id }: Json) => id),
    ...readSleep(context),
    skills: readStoredSkills(context),
    speaker: context.speaker ?? null,
    handoffs: Object.fromEntries(
      context.calls.flatMap(({ id, handoff }: Json) => (handoff ? [[id, handoff]] : [])),
    ),
    refused: context.refusals ?? [],
    isBranch: false,
  }),
  sketch: (run) => {
    const { backOffUntil, uncleared, outputProblem, near, ...counts } = countsOf(run)
    const waits = isEnd(run.place) ? {} : { backOffUntil, uncleared, outputProblem, near }
    const fields = Object.fromEntries(compared.map((key) => [key, counts[key]]))
    const skills = counts.skills.active.map(({ name, allowedTools = null }) => ({ name, allowedTools }))
    return {
      ...fields,
      ...waits,
      skills,
      speaker: counts.speaker,
      refused: counts.refused,
      usage: [toTotals(counts.run), toTotals(counts.session)],
    }
  },
}

const compared = ['lastMessageNumber', 'batchNumber', 'deadline', 'timeLeft', 'wakeAt', 'callCounts'] as const

function listUncleared({ messages, features }: Json): Json[] {
  if (!features.inputShields) return []
  const spoken = messages.findLastIndex(({ role }: Json) => role === 'assistant')
  const isUnheard = ({ role, internal, data }: Json): boolean =>
    role === 'user' && !internal && data?.screened !== true
  return messages.slice(spoken + 1).filter(isUnheard)
}

const isCarried = ({ data }: Json): boolean => data?.reason === 'undelivered'

interface Look {
  action?: unknown
  content?: unknown
  index?: number
  callId?: string
  outputProblem?: string | null
}
const looksOf = ({ output }: Json): Look[] => (Array.isArray(output) ? output : [output ?? {}])
const isBlock = ({ action, content }: Look): boolean =>
  action === 'block' || typeof action !== 'string' || typeof content !== 'string'
const verdictOn = (event: Json, { id }: Call): unknown =>
  (looksOf(event).find(({ callId }) => callId === id) ?? { action: 'block' }).action

const endsRun = (tools: Json, calls: readonly Call[]): boolean =>
  calls.some(({ name, done, failed, unloaded }) => tools[name]?.endsRun && done && !failed && !unloaded)

/** Updates the counters after a row, and decides what the table leaves open about calls and reasons. */
function count(run: Run, next: Run, moment: Moment, row: Row): Run {
  const { event, now } = moment
  const before = countsOf(run)
  const { lastMessageNumber } = before
  let after = noteRefusal(holdClock(run, next, now), event)
  // The partial text of an interrupted answer is its last message.
  const text = row.event === '' ? '' : (event.partial?.text ?? event.error?.partialText ?? '')
  if (text !== '' && (isEnd(row.to) || row.to === 'stopping'))
    after = withCounts(after, { lastMessageNumber: lastMessageNumber + 1, uncleared: 0, carried: 0 })
  const set = (change: Partial<Counts>): Run => withCounts(after, change)
  const addMessages = (added: number) => ({ lastMessageNumber: lastMessageNumber + added })
  const addInput = (added: number) => ({
    ...addMessages(added),
    uncleared: run.setup.features.inputShields ? before.uncleared + added : 0,
  })
  if (row.changes.includes('stop budget')) return set({ near: findNear(run.setup.config, before) })
  if (row.conditions.includes('waitsForBudget'))
    return {
      ...after,
      reason: typeof run.pausing === 'string' ? run.pausing : run.pausing ? 'paused' : 'shared_budget',
    }
  if (row.changes[0]?.startsWith('again') && !row.changes[0].endsWith('emptyRetries'))
    return set(addMessages(1))
  if (row.changes.includes('tellSteering')) return set(addInput(run.steering - next.steering))
  if (row.changes.includes('countAttempt')) return set({ backOffUntil: now + getWaitMs(run, event.error) })
  if (row.changes.includes('doubt')) return capCalls(run, after)
  if (row.changes.includes('takeResult')) return set({ outputProblem: event.output?.outputProblem ?? null })
  if (row.changes.includes('takeAnswer')) {
    const { response, outputProblem = null } = event.output
    const { toolCalls } = response
    const hosted = toolCalls.filter((call: Json) => call.hosted).map(({ id }: Json) => id)
    const skills = { ...before.skills, before: before.skills.history.length, pending: {} }
    const answered = next.response !== 'empty' && {
      ...addMessages(1 + toolCalls.length),
      uncleared: 0,
      carried: 0,
    }
    const batchNumber = lastMessageNumber + 1
    return set({ batchNumber, outputProblem, hosted, skills, handoffs: {}, ...answered })
  }
  switch (row.event) {
    case 'REPLY':
      return set({ ...addInput(event.messages?.length ?? 0), outputProblem: null, callCounts: null })
    case 'SKILL_CHANGED': {
      const pending = { ...before.skills.pending, [event.callId]: event.change }
      return set({ skills: { ...before.skills, pending } })
    }
    case 'HANDED_OFF': {
      const { callId, to, tools } = event
      return set({ handoffs: { ...before.handoffs, [callId]: { to, tools } } })
    }
    case 'done inputShields':
      return set({ uncleared: 0, carried: 0, ...addMessages(row.to === 'BLOCKED' ? 1 : 0) })
    case 'done outputShields': {
      const [look] = looksOf(event)
      // A shield's refusal is a message from the model. An empty answer or a tool result is not.
      const isResult = run.calls.length === 0 && lastMessageNumber > before.batchNumber
      if (row.to === 'BLOCKED' && (run.response === 'empty' || isResult)) return set(addMessages(1))
      return look?.outputProblem === undefined ? after : set({ outputProblem: look.outputProblem })
    }
    case 'done callShields':
      return {
        ...after,
        calls: run.calls.map((call, i) => screenCall(call, after.calls[i], event, before.hosted)),
      }
    case 'done resultShields':
      return { ...after, calls: run.calls.map((call) => screenResult(call, event)) }
    case 'done callGuards':
      return row.to === 'consulted' ? { ...after, calls: refuseBlocked(run.calls, event) } : after
    default:
      break
  }
  if (row.to === 'BUDGET_EXCEEDED') {
    const refused = event.error?.code ?? 'token_budget'
    return { ...after, reason: findSpent(run.setup.config, before) ?? before.near ?? refused }
  }
  if (row.to === 'ERROR' && row.event.startsWith('error '))
    return { ...after, reason: findFailureReason(row.event, event.error) }
  return after
}

const isOfQuestion = ({ what, ids, question }: Json): boolean => what === 'messages' && ids.includes(question)

const isKnownRefusal = ({ refused }: Counts, refusal: Json): boolean =>
  refused.some((one) => JSON.stringify(one) === JSON.stringify(refusal))

/** Remembers refused content. If a question is refused again, the messages that were omitted in vain are restored. */
function noteRefusal(run: Run, { error }: Json): Run {
  const refusal: Json = error?.refusal
  if (!refusal || isKnownRefusal(countsOf(run), refusal)) return run
  const isInVain = (one: Json): boolean =>
    isOfQuestion(refusal) && one.what === 'messages' && one.question === refusal.question
  return withCounts(run, { refused: [...countsOf(run).refused.filter((one) => !isInVain(one)), refusal] })
}

/** A run with sleeping sub-agents sleeps too. The table models only that the run pauses. */
function settleSleep(run: Run, next: Run, moment: Moment, row: Row): Run {
  const sleep = moveSleep(countsOf(run), run, next, moment, row)
  const isSleeping = row.place === 'dispatching' && next.place === 'PAUSED' && sleep.wakeAt !== null
  return withCounts(isSleeping ? { ...next, reason: 'sleeping' } : next, sleep)
}

/** Skill changes take effect when the calls rest or end. Handoffs take effect when the calls end. */
function settleCalls(run: Run, next: Run): Run {
  const isOver = run.calls.length > 0 && next.calls.length === 0
  // Without calls, everything is already settled.
  if (run.calls.length === 0 || (!isOver && !isRest(next.place))) return next
  const { skills, handoffs } = countsOf(next)
  const isHandoff = ({ id, done, failed, unscreened }: Call): boolean =>
    Object.hasOwn(handoffs, id) && done && !failed && !unscreened
  const last = isOver ? run.calls.findLast(isHandoff) : undefined
  const handoff = last && handoffs[last.id]
  const settled = withCounts(next, {
    skills: settleSkills(skills, isOver ? run.calls : next.calls, handoff !== undefined),
  })
  if (!handoff) return settled
  return withCounts(
    { ...settled, setup: { ...settled.setup, tools: handoff.tools, speaker: handoff.to } },
    { speaker: handoff.to, handoffs: {} },
  )
}

const refusal = { done: true, failed: true, perhaps: false, unchecked: false }

/** `next` contains the policies' decisions on the call's new arguments. */
function screenCall(call: Call, next: Call | undefined, event: Json, hosted: readonly string[]): Call {
  const verdict = verdictOn(event, call)
  const isRefused = verdict === 'block' || (hosted.includes(call.id) && verdict === 'redact')
  return due['unchecked']?.(call) && isRefused
    ? { ...call, ...refusal }
    : { ...(next ?? call), unchecked: false, perhaps: call.perhaps }
}

function screenResult(call: Call, event: Json): Call {
  if (!call.unscreened) return call
  return { ...call, unscreened: false, failed: call.failed || verdictOn(event, call) === 'block' }
}

function refuseBlocked(calls: Call[], { output }: Json): Call[] {
  const blocks: Json[] = output.findings.filter(({ action }: Json) => action === 'block')
  const isBlocked = ({ id, done, unloaded }: Call): boolean =>
    !done && !unloaded && blocks.some(({ callIds }) => callIds?.includes(id) ?? true)
  return calls.map((call) => (isBlocked(call) ? { ...call, ...refusal } : call))
}

function holdClock(run: Run, next: Run, now: number): Run {
  const { deadline, timeLeft } = countsOf(run)
  const [rested, rest] = [isRest(run.place), isRest(next.place)]
  if (rest && !rested)
    return withCounts(next, { timeLeft: deadline === null ? null : Math.max(0, deadline - now) })
  if (!rested || rest || isEnd(next.place)) return next
  return withCounts(next, { deadline: timeLeft === null ? deadline : now + timeLeft, timeLeft: null })
}

function getWaitMs(
  { setup, attempt, rateLimits, resends }: Run,
  { kind, retryAfterMs, jitter }: Json,
): number {
  const { baseDelayMs, maxDelayMs } = setup.config.retry
  const before = kind === 'rate_limit' ? rateLimits : attempt - 1 - rateLimits - resends
  const delay = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.min(before, 30)) * (jitter ?? 1)
  return Math.round(retryAfterMs ?? delay)
}

function findFailureReason(actor: string, error: Json): string {
  const { kind, budget } = error ?? {}
  if (actor === 'error fitting' && kind === 'context_overflow') return kind
  if (actor === 'error model' && kind === 'context_overflow') return kind
  if (budget !== undefined) return 'shared_budget'
  if (actor !== 'error model') return 'internal'
  return kind === 'incomplete' ? 'incomplete_response' : 'provider_error'
}

/** Refuses calls beyond the caps, in call order. Beyond the cap per run, the run ends after the other results. */
function capCalls(run: Run, next: Run): Run {
  const { tools, config } = run.setup
  const ofAnswer = config.limits.maxToolCallsPerResponse ?? Infinity
  const ofRun = config.limits.maxToolCalls ?? Infinity
  const ofTool = (name: string): number => tools[name]?.maxCalls ?? Infinity
  const counts = structuredClone(countsOf(run).callCounts) ?? { calls: 0, isOver: false, byTool: {} }
  const hasSeen = run.steps > 1 || new Set(run.calls.map(({ name }) => name)).size < run.calls.length
  let admitted = 0
  const calls = forbidCalls(countsOf(run).skills, run, refusal).map((call): Call => {
    if (call.unloaded || call.done) return call
    const used = counts.byTool[call.name] ?? 0
    const isLate = admitted >= ofAnswer || used >= ofTool(call.name)
    const isOver = !isLate && counts.calls >= ofRun
    if (isOver) counts.isOver = true
    if (isLate || isOver) return { ...call, ...refusal }
    admitted += 1
    counts.calls += 1
    if (ofTool(call.name) < Infinity) counts.byTool[call.name] = used + 1
    return { ...call, perhaps: isWatched(run) && hasSeen }
  })
  const isCapped = [ofRun, ofAnswer, ...calls.map(({ name }) => ofTool(name))].some(Number.isFinite)
  return isCapped ? withCounts({ ...next, calls }, { callCounts: counts }) : { ...next, calls }
}

/** A skill is loaded or unloaded, or a handoff unloads all skills. */
interface SkillChange {
  action: string
  name: string
  allowedTools?: string[]
}

/** Loaded skills, and the changes recorded in the transcript. */
interface Skills {
  active: { name: string; allowedTools?: string[] | undefined }[]
  history: SkillChange[]
  before: number
  /** The change that each call of the last answer makes if it succeeds. */
  pending: Record<string, SkillChange>
}

const fold = (history: readonly SkillChange[]): Skills['active'] =>
  history.reduce<Skills['active']>((active, { action, name, allowedTools }) => {
    if (action === 'hand over') return []
    const others = active.filter((one) => one.name !== name)
    return action === 'unload' ? others : [...others, { name, allowedTools }]
  }, [])

const toSkills = (history: SkillChange[]): Skills => ({
  active: fold(history),
  history,
  before: history.length,
  pending: {},
})

const handover: SkillChange = { action: 'hand over', name: '' }

/** The changes recorded in tool results. A handoff takes effect at the end of its batch. */
function listChanges(messages: Json[]): SkillChange[] {
  const changes: SkillChange[] = []
  let isHandedOver = false
  const endBatch = (): void => {
    if (isHandedOver) changes.push(handover)
    isHandedOver = false
  }
  for (const { role, data } of messages) {
    if (role !== 'tool') endBatch()
    else if (data?.handoff) isHandedOver = true
    if (role === 'tool' && data?.skill) changes.push(data.skill)
  }
  endBatch()
  return changes
}

const readSkills = (messages: Json[]): Skills => toSkills(listChanges(messages))

function readStoredSkills({ skills = [], messages, calls, batchAt }: Json): Skills {
  const pending = calls.flatMap(({ id, skill }: Json) => (skill ? [[id, skill]] : []))
  return {
    active: skills.map(({ name, allowedTools }: Json) => ({ name, allowedTools })),
    history: listChanges(messages),
    before: listChanges(calls.length > 0 ? messages.slice(0, batchAt + 1) : messages).length,
    pending: Object.fromEntries(pending),
  }
}

/** A branch contains a prefix of the transcript and therefore a prefix of the changes. */
const listBranches = ({ history }: Skills): Skills[] =>
  Array.from({ length: history.length + 1 }, (_, count) => toSkills(history.slice(0, count)))

function settleSkills(
  { history, before, pending }: Skills,
  calls: readonly Call[],
  isHandedOver: boolean,
): Skills {
  const loadedSkills = calls.flatMap(({ id, done, failed, unscreened }) => {
    // A provider may name a call `__proto__`.
    const change = Object.hasOwn(pending, id) ? pending[id] : undefined
    return change && done && !failed && !unscreened ? [change] : []
  })
  const all = [...history.slice(0, before), ...loadedSkills, ...(isHandedOver ? [handover] : [])]
  return { active: fold(all), history: all, before, pending }
}

/** Refuses calls that a plan or a skill excludes, except a skill's own tools, and handoffs after the first. */
function forbidCalls({ active }: Skills, { calls, setup, plan, steps }: Run, refusal: Partial<Call>): Call[] {
  const isLeftOut = ({ name }: Call): boolean => plan?.step === steps && plan?.tools?.includes(name) === false
  const isForbidden = ({ name }: Call): boolean =>
    !setup.tools[name]?.skill && active.some(({ allowedTools }) => allowedTools?.includes(name) === false)
  const handoffs = calls.filter(({ name }) => setup.tools[name]?.handoff)
  return calls.map((call) =>
    handoffs.indexOf(call) > 0 || isLeftOut(call) || isForbidden(call)
      ? { ...call, ...refusal, failed: !call.unloaded }
      : call,
  )
}

interface Sleep {
  wakeAt: number | null
  wakeAtByCall: Record<string, number>
}

const noSleep: Sleep = { wakeAt: null, wakeAtByCall: {} }

function readSleep({ wakeAt = null, calls }: Json): Sleep {
  const dates = calls.flatMap(({ id, result, wakeAt: child }: Json) => {
    const at = result === undefined ? child : result.status === 'ok' ? result.wakeAt : undefined
    return at === undefined ? [] : [[id, at]]
  })
  return { wakeAt, wakeAtByCall: Object.fromEntries(dates) as Sleep['wakeAtByCall'] }
}

const isAsleep = ({ wakeAt }: Sleep, now: number): boolean => wakeAt !== null && now < wakeAt
const isForLater = ({ event, now }: Moment): boolean => typeof event.at === 'number' && event.at > now

function moveSleep(before: Sleep, run: Run, next: Run, moment: Moment, row: Row): Sleep {
  const { event, now } = moment
  let { wakeAt } = before
  const wakeAtByCall = { ...before.wakeAtByCall }
  const later = (at: number): number => Math.max(wakeAt ?? at, at)
  if (row.changes.includes('takeReport')) {
    const at =
      row.event === 'CHILD_WAITING' ? event.wakeAt : event.result?.status === 'ok' && event.result.wakeAt
    delete wakeAtByCall[event.callId]
    if (typeof at === 'number') wakeAtByCall[event.callId] = at
  }
  if (row.event === 'done resultShields')
    for (const call of run.calls)
      if (call.unscreened && next.calls.some(({ id, failed }) => id === call.id && failed === true))
        delete wakeAtByCall[call.id]
  const isOver = row.place === 'batchOver' && row.to === 'checkingLimits'
  const isForChildren = row.place === 'dispatching' && row.to === 'PAUSED'
  if (isOver || isForChildren)
    for (const { id, done } of run.calls) {
      const at = wakeAtByCall[id]
      if (at !== undefined && (done ? at > now : isForChildren)) wakeAt = later(at)
    }
  if (row.changes.includes('tellSteering') && run.steering > next.steering) wakeAt = null
  if (run.place === 'PAUSED' && next.place !== 'PAUSED') wakeAt = null
  // A resting run is rescheduled to an earlier or later time.
  if (row.event === 'RESUME' && isForLater(moment))
    wakeAt = run.place === 'PAUSED' ? event.at : later(event.at)
  if (row.conditions.includes('waitsForBudget')) wakeAt = later(event.error.wakeAt)
  const isOthers = next.place === 'PAUSED' && row.event !== 'RESUME' && (run.pausing || run.stop !== null)
  if (isEnd(next.place) || isOthers || (row.event === 'PAUSE' && run.place === 'backingOff')) wakeAt = null
  return { wakeAt, wakeAtByCall: next.calls.length === 0 ? {} : wakeAtByCall }
}

const amounts = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'cachedInputTokens',
  'reasoningTokens',
] as const
type Usage = Record<(typeof amounts)[number], number> & { cost: number | null }
const noUsage = { ...Object.fromEntries(amounts.map((key) => [key, 0])), cost: 0 } as Usage

interface Totals {
  run: Usage
  session: Usage
}

function spend({ run, session }: Totals, usage: Usage): Totals {
  if (amounts.some((key) => !(usage[key] >= 0)) || (usage.cost ?? 0) < 0)
    throw new Broken('usage: Usage is never negative.', `The usage is ${JSON.stringify(usage)}.`)
  const add = (total: Usage): Usage => {
    const cost = total.cost === null || usage.cost === null ? null : total.cost + usage.cost
    return { ...Object.fromEntries(amounts.map((key) => [key, total[key] + usage[key]])), cost } as Usage
  }
  return { run: add(run), session: add(session) }
}

/** What counts towards the limits, in the scope of the budget. */
function countSpent({ scope, countCached }: Json, totals: Totals) {
  const { inputTokens, outputTokens, cachedInputTokens, cost } = totals[scope as keyof Totals]
  const free = countCached ? 0 : Math.min(cachedInputTokens, inputTokens)
  return { tokens: inputTokens + outputTokens - free, outputTokens, cost }
}

function findSpent({ limits, budget }: Json, totals: Totals): string | null {
  const { tokens, outputTokens, cost } = countSpent(budget, totals)
  if (limits.tokenBudget > 0 && tokens >= limits.tokenBudget) return 'token_budget'
  if (limits.outputTokens > 0 && outputTokens >= limits.outputTokens) return 'output_tokens'
  return limits.costLimit > 0 && (cost ?? 0) * (1 + 1e-9) >= limits.costLimit ? 'cost_limit' : null
}

function findNear({ limits, budget, guardrails }: Json, totals: Totals): string | null {
  const { tokens, cost } = countSpent(budget, totals)
  const tokensLeft = Math.max(0, limits.tokenBudget - tokens)
  if (limits.tokenBudget > 0 && tokensLeft <= guardrails.reserveTokens) return 'token_budget'
  const costLeft = findCostLeft(limits.costLimit, cost)
  const reserve = limits.costLimit * guardrails.reserveCostFraction * (1 + 1e-9)
  return costLeft !== null && costLeft <= reserve ? 'cost_limit' : null
}

function findCostLeft(limit: number, cost: number | null): number | null {
  if (!(limit > 0) || cost === null) return null
  return cost * (1 + 1e-9) >= limit ? 0 : limit - cost
}

/** Totals that can be compared. Rounded, because sums of prices have rounding errors. */
const toTotals = (usage: Usage): unknown[] => [
  ...amounts.map((key) => usage[key]),
  usage.cost?.toPrecision(9),
]
