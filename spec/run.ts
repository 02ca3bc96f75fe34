// oxlint-disable-next-line no-explicit-any -- what records hold is JSON, whose shapes records.schema.json has
export type Json = any
/** Perhaps: the log does not say it, or not to these rules. Both ways are possible then. */
export type Verdict = boolean | 'perhaps'

/** A call of the last answer: what was done about it, and what shields are still to see. */
export interface Call extends Record<'started' | 'done' | 'unchecked' | 'unscreened' | 'unloaded', boolean> {
  id: string
  name: string
  failed: Verdict
  /** Who has to act: `nobody`, a person (`approval`), the `client`, or a sub-agent that rests (`child`). */
  needs: string
  /** What the sub-agent asks; without questions, it is paused. */
  questions: Json[]
  /** It may have been refused: logs do not hold the verdicts of guards. */
  perhaps: boolean
  kept: boolean
}
const counts = { steps: 0, attempt: 1, rateLimits: 0, resends: 0 }
const repairs = { recoveries: 0, reprompts: 0, emptyRetries: 0, outputRepairs: 0 }
const none = null as string | null | undefined
const marks = { pausing: false, recalled: false, lastBatchFailed: false as Verdict, plan: null as Json }
/** What starts anew with each message of the user. `stop` is what stops a run after its last words. */
export const turn = { ...counts, ...repairs, ...marks, response: none, reason: none, stop: none }
/** A run by what its log tells of it, in the words of the log's snapshots. `details` are kept beside these rules. */
export const begin = (setup: Json, loaded: string[] = []) => {
  const empty = { steering: 0, calls: [] as Call[], details: null as Json }
  return { ...turn, ...empty, setup, place: 'starting', loaded }
}
export type Run = ReturnType<typeof begin>
export const isEnd = (place: string): boolean => /^[A-Z_]+$/.test(place) && place !== 'PAUSED'
export const isRest = (place: string): boolean => /^(approval|toolOutput|message|PAUSED)$/.test(place)

/** What happens, and when. */
export interface Moment {
  now: number
  event: Json
  /** What others know of a run. Of these rules alone, all that is asked of it is open. */
  ask: (what: string, run: Run) => Verdict
}

/** Calls, by what is due for them. A call, or what its sub-agent or tool asks, waits for a person, or for the client. */
export const due: Record<string, (call: Call) => boolean> = {
  runnable: ({ done, needs, unchecked }) => !done && needs === 'nobody' && !unchecked,
  loaded: ({ unloaded }) => !unloaded,
  undecided: ({ done, unloaded }) => !done && !unloaded,
  running: ({ started, done }) => started && !done,
  unscreened: ({ unscreened }) => unscreened,
  unchecked: ({ done, unchecked }) => !done && unchecked,
  approval: (call) => waitsFor(call, /approval/),
  client: (call) => waitsFor(call, /client|elicitation/),
  paused: ({ done, needs, questions }) => !done && needs === 'child' && questions.length === 0,
}
const waitsFor = ({ done, needs, questions }: Call, who: RegExp): boolean =>
  !done &&
  (who.test(needs) || (needs === 'child' && questions.some((one) => !one.answer && who.test(one.needs))))

/** The call that an answer is for, and the question of its sub-agent if it is for one. */
export function findAsked({ calls }: Run, { type, callId }: Json): [Call | undefined, Json] {
  const who = type === 'TOOL_OUTPUT' ? /client|elicitation/ : /approval/
  const own = calls.find(({ id }) => id === callId)
  if (own) return [who.test(own.needs) && !own.done && !own.unchecked ? own : undefined, null]
  const above = calls.find((call) => waitsFor(call, who) && callId.startsWith(`${call.id}/`))
  const question = above?.questions.find((one) => `${above.id}/${one.callId}` === callId)
  return [question && who.test(question.needs) && !question.answer ? above : undefined, question]
}

/** Whether guards look at the run, which may stop it or refuse its calls. */
const noGuards = /^(maxTokensRecoveries|reserveTokens|reserveCostFraction|emptyAnswer|maxRepeatedToolSteps)$/
export const isWatched = ({ setup }: Run): boolean =>
  Object.entries(setup.config.guardrails).some(([key, value]) => value !== null && !noGuards.test(key))
