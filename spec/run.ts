// oxlint-disable-next-line no-explicit-any -- what records hold is JSON, whose shapes records.schema.json has
export type Json = any
/** `perhaps` means that the log does not decide it, or not for these rules. Both outcomes are then possible. */
export type Verdict = boolean | 'perhaps'

/** A call of the last answer, with its progress and pending screenings. */
export interface Call
  extends Record<
    | 'hosted'
    | 'started'
    | 'done'
    | 'unchecked'
    | 'unscreened'
    | 'unloaded'
    | 'client'
    | 'decided'
    | 'approved',
    boolean
  > {
  id: string
  name: string
  failed: Verdict
  /**
   * The party that must act. Values are `nobody`, `approval` (a person), `client`, and `child` (a resting sub-agent).
   */
  needs: string
  /** Questions of the sub-agent. Without questions, it is paused. */
  questions: Json[]
  /** The call may have been refused, because logs do not contain the verdicts of guards. */
  perhaps: boolean
  hasHandle: boolean
  /** Who may approve it, and the approvals so far. */
  terms: Json[]
  votes: Json[]
  /** The time limit of its question, and the time at which the question that was asked expires. */
  limit: { ms: number; end: number }
  expiresAt: number | null
  /** Its arguments as JSON text. */
  args: string
  /**
   * Only people decide it: the provider runs it, it was interrupted, an approval was taken back, or its grant ended before it could
   * start.
   */
  bound: boolean
  /** The grant that lets it run. */
  grant: string | null
  /** Approved and expiring, so it does not wait for other answers. */
  urgent: boolean
}
const counts = { steps: 0, attempt: 1, rateLimits: 0, resends: 0 }
const repairs = { recoveries: 0, reprompts: 0, emptyRetries: 0, outputRepairs: 0 }
const none = null as string | null | undefined
const marks = {
  pausing: false as boolean | string,
  recalled: false,
  lastBatchFailed: false as Verdict,
  plan: null as Json,
}
/** State that each user message resets. `stop` is the reason that ends a run after its last words. */
export const turn = { ...counts, ...repairs, ...marks, response: none, reason: none, stop: none }
/**
 * A run as reconstructed from its log, with the names of the log's snapshots. `details` is state that these rules do
 * not use.
 */
export const begin = (setup: Json, loaded: string[] = [], grants: Json[] = []) => {
  const empty = { steering: 0, calls: [] as Call[], details: null as Json }
  return { ...turn, ...empty, setup, place: 'starting', loaded, grants }
}
export type Run = ReturnType<typeof begin>
export const isEnd = (place: string): boolean => /^[A-Z_]+$/.test(place) && place !== 'PAUSED'
export const isRest = (place: string): boolean => /^(approval|toolOutput|message|PAUSED)$/.test(place)

/** An event and its time. */
export interface Moment {
  now: number
  event: Json
  /** Answers conditions from knowledge outside these rules. With these rules alone, its answers are undecided. */
  ask: (what: string, run: Run) => Verdict
}

/**
 * Tests for the pending work of a call. A call, or a question of its sub-agent or tool, waits for a person or for the
 * client.
 */
export const due: Record<string, (call: Call, now?: number) => boolean> = {
  runnable: ({ done, needs, unchecked, expiresAt }, now = 0) =>
    !done && needs === 'nobody' && !unchecked && !isPast(expiresAt, now),
  late: (call, now = 0) => listLate(call, now).length > 0,
  urgent: ({ done, started, needs, urgent }) => urgent && !done && !started && needs === 'nobody',
  loaded: ({ unloaded }) => !unloaded,
  undecided: ({ done, unloaded }) => !done && !unloaded,
  running: ({ started, done }) => started && !done,
  unscreened: ({ unscreened }) => unscreened,
  unchecked: ({ done, unchecked }) => !done && unchecked,
  approval: (call) => waitsFor(call, /approval/),
  client: (call) => waitsFor(call, /client|elicitation/),
  paused: ({ done, needs, questions }) => !done && needs === 'child' && questions.length === 0,
}
export const isPast = (expiresAt: Json, now: number): boolean =>
  typeof expiresAt === 'number' && now >= expiresAt
/** The call, or the questions of its sub-agent, if their time has passed. */
export const listLate = (call: Call, now: number): Json[] => {
  if (call.done) return []
  const open = call.questions.filter((one) => !one.answer && isPast(one.expiresAt, now))
  // A sub-agent that works ends its questions itself, but cannot cancel the run.
  if (call.started) return open.filter(({ onExpiry }) => onExpiry === 'cancel')
  if (call.expiresAt !== null) return isPast(call.expiresAt, now) ? [call] : []
  return call.needs === 'child' ? open : []
}
const waitsFor = ({ done, needs, questions }: Call, who: RegExp): boolean =>
  !done &&
  (who.test(needs) || (needs === 'child' && questions.some((one) => !one.answer && who.test(one.needs))))

/** The terms of a call's question: those of the agent, and of each policy that asks. */
export const termsOf = ({ approvers = [] }: Json, decisions: Json): Json[] => [
  ...approvers,
  ...(decisions ?? []).flatMap((one: Json) =>
    one.decision === 'ask' && !one.shadow && one.approvers ? [one.approvers] : [],
  ),
]
export const expiryEnds = ['reject', 'pause', 'cancel']
/** The time limit of a call's question: the terms of a policy that asks replace those of the agent. */
export const limitOf = ({ expiry = {} }: Json, decisions: Json): Call['limit'] => {
  const asks = (decisions ?? []).filter((one: Json) => one.decision === 'ask' && !one.shadow)
  const terms: Json[] = asks.length > 0 ? asks.map((one: Json) => ({ ...expiry, ...one })) : [expiry]
  const times = terms.flatMap(({ expiresMs = 0 }) => (expiresMs > 0 ? [expiresMs] : []))
  const ends = terms.map(({ onExpiry = 'reject' }) => expiryEnds.indexOf(onExpiry))
  return { ms: times.length > 0 ? Math.min(...times) : 0, end: Math.max(...ends) }
}
/** Whether a person may approve. */
const suits = ({ requesters }: Json, { ids, roles, count = 1, notRequester }: Json, by: Json): boolean => {
  if (!by) return !ids && !roles && !notRequester && count === 1
  if (notRequester && (!requesters || requesters.some(({ id }: Json) => id === by.id))) return false
  return (
    (!ids && !roles) || ids?.includes(by.id) || by.roles?.some((role: Json) => roles?.includes(role)) === true
  )
}
/** Whether the votes of different people meet all terms. */
export const isEnough = (setup: Json, terms: Json[], votes: Json[]): boolean =>
  terms.every((one) => votes.filter(({ by }) => suits(setup, one, by)).length >= (one.count ?? 1))
export const pollOf = (call: Call, question: Json): { terms: Json[]; votes: Json[] } =>
  question ? { terms: question.approvers ?? [], votes: question.approvals ?? [] } : call
/** Whether an approval or a rejection counts. An edit voids the votes of others. */
export function mayVote(run: Run, event: Json, now: number): boolean {
  const [call, question] = findAsked(run, event)
  if (!call || event.type === 'TOOL_OUTPUT') return Boolean(call)
  if (isPast((question ?? call).expiresAt, now)) return false
  const { terms, votes } = pollOf(call, question)
  const isOf = (one: Json): boolean => suits(run.setup, one, event.by)
  if (terms.length === 0) return true
  if (event.type === 'REJECT') return terms.some((one) => isOf({ ...one, notRequester: false, count: 1 }))
  if (event.arguments !== undefined) return isEnough(run.setup, terms, [event])
  return terms.some(isOf) && !votes.some(({ by }) => by && by.id === event.by?.id)
}

/** The call that an answer refers to, and the question of its sub-agent, if any. */
export function findAsked({ calls }: Run, { type, callId }: Json): [Call | undefined, Json] {
  const who = type === 'TOOL_OUTPUT' ? /client|elicitation/ : /approval/
  const own = calls.find(({ id }) => id === callId)
  if (own) return [who.test(own.needs) && !own.done && !own.unchecked ? own : undefined, null]
  const above = calls.find((call) => waitsFor(call, who) && callId.startsWith(`${call.id}/`))
  const question = above?.questions.find((one) => `${above.id}/${one.callId}` === callId)
  return [question && who.test(question.needs) && !question.answer ? above : undefined, question]
}

export const isGrantOver = ({ uses, until }: Json, now: number): boolean => uses === 0 || isPast(until, now)
/** The calls that grants cover, with their grants, and the grants after these uses. */
export function spreadGrants({ calls, grants: all, setup }: Run, now: number) {
  const covered = new Map<string, string>()
  let grants = all
  for (const call of calls) {
    const isOpen = call.needs === 'approval' && !call.done && !call.unchecked && !isPast(call.expiresAt, now)
    if (!isOpen || call.bound || call.client) continue
    const grant = grants.find((one) => !isGrantOver(one, now) && covers(setup, one, call))
    if (!grant) continue
    covered.set(call.id, grant.id)
    grants = grants.map((one) => (one === grant && 'uses' in one ? { ...one, uses: one.uses - 1 } : one))
  }
  return { covered, grants }
}
function covers(
  setup: Json,
  { tool, speaker, when, arguments: exact, givers }: Json,
  { name, args, terms }: Call,
): boolean {
  if (tool !== name || (speaker ?? null) !== (setup.speaker ?? null) || !isEnough(setup, terms, givers))
    return false
  if (!when) return exact !== undefined && sortKeys(exact) === sortKeys(args)
  const values = readObject(args)
  if (values === null) return false
  return Object.entries<Json>(when).every(([key, allowed]) => {
    const value = Object.getOwnPropertyDescriptor(values, key)?.value
    if (value === undefined) return false
    if (typeof allowed !== 'object' || allowed === null) return value === allowed
    if (Array.isArray(allowed)) return allowed.some((one) => one === value)
    return typeof value === 'number' && !(value < allowed.min) && !(value > allowed.max)
  })
}
/** JSON text without whitespace and with sorted keys. */
function sortKeys(text: string): string {
  const sort = (_: string, value: Json): Json =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
      : value
  try {
    return JSON.stringify(JSON.parse(text), sort)
  } catch {
    return text
  }
}
function readObject(text: string): Json {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
/** The call whose approval a person takes back, and the question of its sub-agent. */
export function findOwn({ calls }: Run, { callId, by }: Json): [Call | undefined, Json, Json[]] {
  const own = calls.find(({ id }) => id === callId)
  const above = own ?? calls.find((call) => !call.done && callId.startsWith(`${call.id}/`))
  const question = own
    ? null
    : above?.questions.find((one) => !one.answer && `${above.id}/${one.callId}` === callId)
  if (!above || (!own && !question)) return [undefined, null, []]
  const { done, started, grant, needs, approved } = above
  const isFree =
    !done && !started && grant === null && (needs === 'approval' || (needs === 'nobody' && approved))
  if (own && !isFree) return [undefined, null, []]
  const votes: Json[] = question ? (question.approvals ?? []) : above.votes
  const others = votes.filter((vote) => vote.by?.id !== by?.id)
  return [others.length < votes.length ? above : undefined, question, others]
}

/** Whether guards check the run. They may stop it or refuse its calls. */
const noGuards = /^(maxTokensRecoveries|reserveTokens|reserveCostFraction|emptyAnswer|maxRepeatedToolSteps)$/
export const isWatched = ({ setup }: Run): boolean =>
  Object.entries(setup.config.guardrails).some(([key, value]) => value !== null && !noGuards.test(key))
