import { digest, fingerprintCall } from '../../guards/lib/fingerprint.js'
import type { CallFact, ChildOutcome } from '../../guards/types.js'
import type { Json, JsonObject } from './json.js'
import type { MediaPart } from './messages.js'
import type { PendingCall, Reason } from './run-result.js'
import type { CallNeeds } from './model-response.js'
import type { SkillChange } from './skills.js'
import type { Usage } from './usage.js'

/**
 * How a call ended. `ok` is the only success; the others each become one error result for the model.
 * - `error`: the tool threw · `timeout`: it took longer than its `timeoutMs`
 * - `unknown_tool`, `invalid_arguments`: it never ran · `denied`: the tool refused by policy
 * - `rejected`: a person said no · `blocked`: a guard refused it · `not_executed`: the run ended first
 * - `interrupted`: it was running when the run ended, so its outcome is unknown
 * - `not_loaded`: its tool is deferred, and this result loads it; guards and caps do not count the call
 */
export type ResultStatus =
  | 'ok'
  | 'error'
  | 'timeout'
  | 'unknown_tool'
  | 'invalid_arguments'
  | 'denied'
  | 'rejected'
  | 'blocked'
  | 'not_executed'
  | 'interrupted'
  | 'not_loaded'

/**
 * Why a tool failed, for the guards: `transient` may pass by itself, `policy_denied` will not.
 *
 * @example
 * const kind: ToolErrorKind = 'transient' // 'policy_denied' ends the run when it is asked for again
 * throw new ToolError(kind, 'The database restarts; try again.')
 */
export type ToolErrorKind = 'policy_denied' | 'transient' | 'failed'

/** The outcome of one call. */
export interface ToolResult {
  /** `ok` is the only success. */
  status: ResultStatus
  /** What the model reads. */
  content: string
  /** What a page is shown in place of `content`: the `publicMessage` of a `ToolError`. */
  publicMessage?: string
  /** The media that the model reads, too: pictures, sounds, documents. */
  media?: MediaPart[]
  /** A model that is not known to take the media reads `content` alone. */
  mediaOptional?: true
  /** What the server of the tool sent for the app: no model reads it. */
  appData?: JsonObject
  /** Set when `status` is `error`, `timeout` or `denied`. */
  errorKind?: ToolErrorKind
  /** How long it ran; 0 when it never did. */
  durationMs: number
  /** The guard that refused it, when a guard did. */
  refusedBy?: Reason
  /** How the run of a sub-agent ended. */
  child?: ChildOutcome
  /** The tool has returned `sleepUntil`: when the run is to go on, in milliseconds since the epoch. */
  wakeAt?: number
  /** True when `content` was cut to the size limit. */
  truncated?: true
}

/** A call of the current batch. */
export interface BatchCall {
  id: string
  name: string
  /** JSON text: the model's own, or a person's edit of it. */
  arguments: string
  needs: CallNeeds
  /** True when the provider runs the call: here it is only approved or rejected. */
  hosted?: true
  /** True when its tool was not loaded as the call came: it does not run, and its result loads the tool. */
  unloaded?: true
  /** What the guards know of it. */
  fact?: CallFact
  /** True once it was handed to its tool. */
  started?: true
  /** True when it was running as the process died: it may have had its effect already. */
  interrupted?: true
  /** How often that was, from the second time on. */
  interruptions?: number
  /** True when `needsApproval` did not answer in time: the call does not run. */
  approvalTimedOut?: true
  /** True once a person has let it run. */
  approved?: true
  /** True while the arguments are uncleared: they are not shown, and the call does not run. */
  unscreenedArguments?: true
  /** True when a person changed the arguments before approving. */
  edited?: true
  /** What its sub-agent has used, as far as it is in the run's totals. */
  childUsage?: Usage
  /** What its sub-agent asked when it last rested; empty when it was paused. Or what its tool asked in the middle of the call. */
  questions?: ChildQuestion[]
  /** What its tool wants to have when it is called again with the answers. */
  memo?: Json
  /** When its sub-agent is to be woken, which sleeps. */
  wakeAt?: number
  /** What it changes of the session's skills, once its result is a success. */
  skill?: SkillChange
  /** What its tool goes on from in another process: the id of a job at a service, for example. */
  handle?: Json
  /** Who speaks once the batch is over and its result is a success. */
  handoff?: Handoff
  result?: ToolResult
  /** True while the result is uncleared: it is not shown or sent. */
  unscreenedResult?: true
  /** When the result came, in milliseconds since the epoch. */
  settledAt?: number
}

/** What the call of a handoff changes: another agent speaks from the next request on. */
export interface Handoff {
  /** How the handoff calls the other agent. */
  to: string
  /** The tools of the other agent. */
  tools: Record<string, ToolTraits>
}

/** What the machine knows of a tool. */
export interface ToolTraits {
  /** Changes nothing: safe to repeat, and progress is not expected of it. */
  readOnly: boolean
  /** Running it twice with one idempotency key has the effect of running it once. */
  idempotent: boolean
  /** Repeats by design (waits for something); exempt from the repetition guards. */
  polling: boolean
  /** Calls of it a run. Absent: no cap. */
  maxCalls?: number
  /** A result of it that is a success is the answer of the run. */
  endsRun?: true
  /** The model is not told of it in full until it is loaded. */
  deferred?: true
  /** It goes on from the handle that a call has kept, so that such a call may be executed again. */
  keepsHandle?: true
  /** It loads deferred tools: into the request (`append`), or into its results (`dispatch`). */
  loads?: 'append' | 'dispatch'
  /** It belongs to the skills: no skill forbids it. */
  skill?: true
  /** It hands the conversation to another agent. */
  handoff?: true
  /** A sub-agent with a log of its own: an interrupted call resumes from that log. */
  delegate?: true
}

/** Whether a call can run: it needs no answer first, and shields have cleared its arguments. */
export function isRunnable({ needs, result, unscreenedArguments }: BatchCall): boolean {
  return result === undefined && needs === 'nobody' && !unscreenedArguments
}

/** Whether a call of this tool loads it instead of running it. */
export function isUnloadedTool(
  { tools, loaded }: { tools: Readonly<Record<string, ToolTraits>>; loaded: readonly string[] },
  name: string,
): boolean {
  return Object.hasOwn(tools, name) && tools[name]?.deferred === true && !loaded.includes(name)
}

/** The index of a call that has no result yet; -1: there is none. */
export function findOpenCallIndex(calls: readonly BatchCall[], callId: string): number {
  return calls.findIndex(({ id, result }) => result === undefined && id === callId)
}

/**
 * The fingerprint that an answer to a call refers to: of its name and its current arguments. Whether a call may run again is another
 * question each time that it was interrupted, so that an answer that comes twice does not let it run twice.
 */
export function getCallFingerprint(call: BatchCall): string {
  const first = getFirstFingerprint(call)
  return call.interrupted ? digest(`${first} interrupted ${call.interruptions ?? 1}`) : first
}

/** Of the call before it was interrupted. */
function getFirstFingerprint({ name, arguments: text, fact }: BatchCall): string {
  return fact?.fingerprint ?? fingerprintCall(name, text)
}

/**
 * A question of a sub-agent, under the id that the call has there, and how it was answered. `own`: the call's tool asks, not a
 * sub-agent.
 */
export type ChildQuestion = PendingCall & { answer?: ChildAnswer; fromTool?: true }

/** Plain JSON: it is kept until the sub-agent resumes. */
export type ChildAnswer =
  | { type: 'approve'; arguments?: string }
  | { type: 'reject'; why: string }
  | { type: 'output'; content: string; media?: MediaPart[]; isError?: boolean }
