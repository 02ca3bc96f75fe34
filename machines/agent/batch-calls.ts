import { digest, fingerprintCall } from '../../guards/lib/fingerprint.js'
import type { CallFact, ChildOutcome } from '../../guards/types.js'
import type { Approval, PolicyVerdict } from './approvals.js'
import type { Json, JsonObject } from './json.js'
import type { MediaPart } from './messages.js'
import type { Principal } from './principal.js'
import type { PendingCall, Reason } from './run-result.js'
import type { CallNeeds } from './model-response.js'
import type { SkillChange } from './skills.js'
import type { Usage } from './usage.js'

/**
 * How a call ended. `ok` is the only value that means success. Every other status becomes one error result for the
 * model.
 * - `error` – the tool threw
 * - `timeout` – took longer than its `timeoutMs`
 * - `unknown_tool`, `invalid_arguments` – never ran
 * - `denied` – refused by the tool's policy
 * - `rejected` – refused by a person
 * - `expired` – was not approved or could not start in time
 * - `blocked` – refused by a guard
 * - `not_executed` – the run ended first
 * - `interrupted` – was running when the run ended, so its outcome is unknown
 * - `not_loaded` – its tool is deferred, and this result loads it; guards and caps do not count the call
 */
export type ResultStatus =
  | 'ok'
  | 'error'
  | 'timeout'
  | 'unknown_tool'
  | 'invalid_arguments'
  | 'denied'
  | 'rejected'
  | 'expired'
  | 'blocked'
  | 'not_executed'
  | 'interrupted'
  | 'not_loaded'

/**
 * How guards classify a tool's failure. A `transient` failure may resolve without a change; a `policy_denied` failure
 * does not.
 * @example
 * const kind: ToolErrorKind = 'transient' // 'policy_denied' ends the run when it is asked for again
 * throw new ToolError(kind, 'The database restarts; try again.')
 */
export type ToolErrorKind = 'policy_denied' | 'transient' | 'failed'

/** The outcome of one call. */
export interface ToolResult {
  /** The status of the call. `ok` is the only value that means success. */
  status: ResultStatus
  /** The text that the model reads. */
  content: string
  /** The `publicMessage` of a `ToolError`. User interfaces show it instead of `content`. */
  publicMessage?: string
  /** Media for the model: images, audio, documents. `content` has a line of text for each item. */
  media?: MediaPart[]
  /** Models that are not known to support the media read only `content`. */
  mediaOptional?: true
  /**
   * The `_meta` and `structuredContent` that the tool's MCP server sent for the app, up to 64 K characters. Hidden from
   * the model, and not emitted if shields screen results.
   */
  appData?: JsonObject
  /** Whether the failure is temporary. Set when `status` is `error`, `timeout` or `denied`. */
  errorKind?: ToolErrorKind
  /** Duration in milliseconds. 0 if the call never ran. */
  durationMs: number
  /** The guard that refused the call. */
  refusedBy?: Reason
  child?: ChildOutcome
  /** The time when the run continues, in milliseconds since the epoch. Set by `sleepUntil`. */
  wakeAt?: number
  /** True when `content` was truncated to the size limit. */
  truncated?: true
}

export function toResult(status: ResultStatus, content: string): ToolResult {
  return { status, content, durationMs: 0 }
}

/** A call in the current batch. */
export interface BatchCall {
  id: string
  name: string
  /** The arguments as JSON text, from the model or edited by a person. */
  arguments: string
  needs: CallNeeds
  /** The provider runs the call; it is only approved or rejected here. */
  hosted?: true
  /** The tool was not loaded. The call does not run, and its result loads the tool. */
  unloaded?: true
  /** The call as guards see it. */
  fact?: CallFact
  /** The call was passed to its tool. */
  started?: true
  /** The call was running when the process died, so it may have taken effect. */
  interrupted?: true
  /** Number of interruptions. Absent until the second one. */
  interruptions?: number
  /** `needsApproval` timed out, so the call does not run. */
  approvalTimedOut?: true
  approved?: true
  /** The id of the grant that lets the call run. */
  grant?: string
  /** The grant ended before the call could start, or an approval was revoked, so a person must approve the call. */
  ungranted?: true
  /** Policy decisions. Absent if no policy was consulted. */
  decisions?: PolicyVerdict[]
  /** Approvals so far. Absent if there are none. */
  approvals?: readonly Approval[]
  /** The time by which the call must start, in milliseconds since the epoch. A later start is refused. */
  expiresAt?: number
  /** The arguments are new, and no policy has decided on them yet. The call does not run. */
  undecided?: true
  /** The tool runs in the client and waits for approval. */
  client?: true
  /** The arguments are uncleared, so they are hidden and the call does not run. */
  unscreenedArguments?: true
  /** A person changed the arguments before approving. */
  edited?: true
  /** The usage of the call's sub-agent, already included in the run's totals. */
  childUsage?: Usage
  /** Unanswered questions from the call's sub-agent or tool. Empty if the sub-agent is paused. */
  questions?: ChildQuestion[]
  /** State that the call's tool receives together with the answers. */
  memo?: Json
  /** The time when the call's sleeping sub-agent continues. */
  wakeAt?: number
  /** A skill change that takes effect when the call succeeds. */
  skill?: SkillChange
  /** A handle, such as a job id, that lets the call's tool continue in another process. */
  handle?: Json
  /** A handoff that takes effect when the call succeeds and the batch ends. */
  handoff?: Handoff
  result?: ToolResult
  /** The result is uncleared, so it is hidden and not sent. */
  unscreenedResult?: true
  /** Time of the result, in milliseconds since the epoch. */
  settledAt?: number
}

/** A handoff: another agent continues from the next request. */
export interface Handoff {
  /** The handoff's name for the other agent. */
  to: string
  tools: Record<string, ToolTraits>
}

/** The machine's view of a tool. */
export interface ToolTraits {
  /** The tool has no side effects. Its calls are safe to repeat and are not expected to make progress. */
  readOnly: boolean
  /** Running the tool twice with the same idempotency key has the same effect as running it once. */
  idempotent: boolean
  /** The tool is called repeatedly by design, so repetition guards ignore it. */
  polling: boolean
  /** Maximum number of calls per run. Unlimited if absent. */
  maxCalls?: number
  /** A successful result becomes the answer of the run. */
  endsRun?: true
  /** The model gets only a short description of the tool until it is loaded. */
  deferred?: true
  /** The tool continues from a call's handle, so an interrupted call may run again. */
  keepsHandle?: true
  /** How the tool loads deferred tools: into the request (`append`) or through its results (`dispatch`). */
  loads?: 'append' | 'dispatch'
  /** The tool is one of the skill tools, so no skill forbids it. */
  skill?: true
  /** The tool hands the conversation to another agent. */
  handoff?: true
  /** The tool is a sub-agent. An interrupted call resumes from the log of the sub-agent. */
  delegate?: true
}

/** Denied calls already have a result. */
export function isRunnable(call: BatchCall): boolean {
  const { needs, result, unscreenedArguments, undecided } = call
  return result === undefined && needs === 'nobody' && !unscreenedArguments && !undecided
}

export function isUnloadedTool(
  { tools, loaded }: { tools: Readonly<Record<string, ToolTraits>>; loaded: readonly string[] },
  name: string,
): boolean {
  return Object.hasOwn(tools, name) && tools[name]?.deferred === true && !loaded.includes(name)
}

export function findOpenCallIndex(calls: readonly BatchCall[], callId: string): number {
  return calls.findIndex(({ id, result }) => result === undefined && id === callId)
}

/** An answer must match it. Each interruption changes it, so a duplicate answer cannot run the call twice. */
export function getCallFingerprint(call: BatchCall): string {
  const first = getFirstFingerprint(call)
  return call.interrupted ? digest(`${first} interrupted ${call.interruptions ?? 1}`) : first
}

export function getFirstFingerprint({ name, arguments: text, fact }: BatchCall): string {
  return fact?.fingerprint ?? fingerprintCall(name, text)
}

/** The call id is the id in the sub-agent's run. `fromTool` marks a question from the call's tool. */
export type ChildQuestion = PendingCall & { answer?: ChildAnswer; fromTool?: true }

/** Plain JSON, stored until the sub-agent resumes. */
export type ChildAnswer = { by?: Principal } & (
  | { type: 'approve'; arguments?: string; why?: string; others?: readonly Approval[] }
  | { type: 'reject'; why: string }
  | { type: 'expired' }
  | { type: 'output'; content: string; media?: MediaPart[]; isError?: boolean }
)
