import { type Call, type Json, type Run, type Moment, isEnd } from '../../../spec/run.js'
import { type Row, Broken } from './judge-log.js'

/** A skill is loaded or unloaded, or a handoff unloads all skills. */
interface SkillChange {
  action: string
  name: string
  allowedTools?: string[]
}

/** Loaded skills, and the changes recorded in the transcript. */
export interface Skills {
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

export const readSkills = (messages: Json[]): Skills => toSkills(listChanges(messages))

export function readStoredSkills({ skills = [], messages, calls, batchAt }: Json): Skills {
  const pending = calls.flatMap(({ id, skill }: Json) => (skill ? [[id, skill]] : []))
  return {
    active: skills.map(({ name, allowedTools }: Json) => ({ name, allowedTools })),
    history: listChanges(messages),
    before: listChanges(calls.length > 0 ? messages.slice(0, batchAt + 1) : messages).length,
    pending: Object.fromEntries(pending),
  }
}

/** A branch contains a prefix of the transcript and therefore a prefix of the changes. */
export const listBranches = ({ history }: Skills): Skills[] =>
  Array.from({ length: history.length + 1 }, (_, count) => toSkills(history.slice(0, count)))

export function settleSkills(
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
export function forbidCalls(
  { active }: Skills,
  { calls, setup, plan, steps }: Run,
  refusal: Partial<Call>,
): Call[] {
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

export interface Sleep {
  wakeAt: number | null
  wakeAtByCall: Record<string, number>
}

export const noSleep: Sleep = { wakeAt: null, wakeAtByCall: {} }

export function readSleep({ wakeAt = null, calls }: Json): Sleep {
  const dates = calls.flatMap(({ id, result, wakeAt: child }: Json) => {
    const at = result === undefined ? child : result.status === 'ok' ? result.wakeAt : undefined
    return at === undefined ? [] : [[id, at]]
  })
  return { wakeAt, wakeAtByCall: Object.fromEntries(dates) as Sleep['wakeAtByCall'] }
}

export const isAsleep = ({ wakeAt }: Sleep, now: number): boolean => wakeAt !== null && now < wakeAt
export const isForLater = ({ event, now }: Moment): boolean => typeof event.at === 'number' && event.at > now

export function moveSleep(before: Sleep, run: Run, next: Run, moment: Moment, row: Row): Sleep {
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
export type Usage = Record<(typeof amounts)[number], number> & { cost: number | null }
export const noUsage = { ...Object.fromEntries(amounts.map((key) => [key, 0])), cost: 0 } as Usage

interface Totals {
  run: Usage
  session: Usage
}

export function spend({ run, session }: Totals, usage: Usage): Totals {
  if (amounts.some((key) => !(usage[key] >= 0)) || (usage.cost ?? 0) < 0)
    throw new Broken('usage: Usage is never negative.', `The usage is ${JSON.stringify(usage)}.`)
  const add = (total: Usage): Usage => {
    const cost = total.cost === null || usage.cost === null ? null : total.cost + usage.cost
    return { ...Object.fromEntries(amounts.map((key) => [key, total[key] + usage[key]])), cost } as Usage
  }
  return { run: add(run), session: add(session) }
}

export function findSpent({ limits, budget }: Json, { run, session }: Totals): string | null {
  const { inputTokens, outputTokens, cachedInputTokens, cost } = budget.scope === 'session' ? session : run
  const free = budget.countCached ? 0 : Math.min(cachedInputTokens, inputTokens)
  if (limits.tokenBudget > 0 && inputTokens + outputTokens - free >= limits.tokenBudget) return 'token_budget'
  if (limits.outputTokens > 0 && outputTokens >= limits.outputTokens) return 'output_tokens'
  return limits.costLimit > 0 && (cost ?? 0) * (1 + 1e-9) >= limits.costLimit ? 'cost_limit' : null
}

export function findNear({ limits, budget, guardrails }: Json, totals: Totals): string | null {
  const { inputTokens, outputTokens, cachedInputTokens, cost } = totals[budget.scope as 'run' | 'session']
  const free = budget.countCached ? 0 : Math.min(cachedInputTokens, inputTokens)
  const tokensLeft = Math.max(0, limits.tokenBudget - (inputTokens + outputTokens - free))
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
export const toTotals = (usage: Usage): unknown[] => [
  ...amounts.map((key) => usage[key]),
  usage.cost?.toPrecision(9),
]
