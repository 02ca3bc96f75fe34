import { omitUndefined } from '../../guards/lib/json.js'
import type { Principal } from './principal.js'

const strictness = { allow: 0, ask: 1, deny: 2 } as const

export type DecisionKind = keyof typeof strictness

export const expiryEnds = ['reject', 'pause', 'cancel'] as const

export interface Expiry {
  /** The time limit in milliseconds, counted from the question. 0 means that the question does not expire. */
  expiresMs?: number
  /**
   * `reject`: the call does not run, and the run continues. `pause`: the run also pauses until it is resumed. `cancel`:
   * the run is cancelled. Defaults to `reject`.
   */
  onExpiry?: (typeof expiryEnds)[number]
}

/**
 * The people who may approve a call. Without `ids` and `roles`, anyone may approve.
 * @example
 * const twoOfFinance: Approvers = { roles: ['finance'], count: 2, notRequester: true }
 */
export interface Approvers {
  /** A person with one of these ids, or with one of `roles`, may approve. */
  ids?: readonly string[]
  roles?: readonly string[]
  /** How many different people must approve. Defaults to 1. */
  count?: number
  /** Whether people who wrote messages in the run are excluded from approving. Defaults to false. */
  notRequester?: boolean
}

/** One person's approval of a call. */
export interface Approval {
  by?: Principal
  /** Milliseconds since the epoch. */
  at: number
  why?: string
}

export type ApprovalOutcome = 'approved' | 'rejected' | 'expired' | 'granted' | 'revoked'

/** One policy's decision about a call, as stored in the log. */
export interface PolicyVerdict extends Expiry {
  policy: string
  decision: DecisionKind
  rule?: string
  reason?: string
  /** Who may approve, if the policy asks for approval. */
  approvers?: Approvers
  /** The decision was only recorded and has no effect. */
  shadow?: true
  /** The policy threw, timed out or returned an invalid decision. */
  failed?: true
}

interface Decided {
  decisions?: readonly PolicyVerdict[]
}

function listEnforced({ decisions = [] }: Decided, kind?: DecisionKind): PolicyVerdict[] {
  return decisions.filter(({ shadow, decision }) => !shadow && (!kind || decision === kind))
}

export function findStrictest(call: Decided): DecisionKind | null {
  return listEnforced(call).reduce<DecisionKind | null>(
    (most, { decision }) => (most !== null && strictness[most] >= strictness[decision] ? most : decision),
    null,
  )
}

export function isDenied(call: Decided): boolean {
  return call.decisions !== undefined && findStrictest(call) === 'deny'
}

export function getAskReason(call: Decided): { reason?: string } {
  const reasons = listEnforced(call, 'ask').flatMap(({ reason }) => reason ?? [])
  return reasons.length > 0 ? { reason: [...new Set(reasons)].join(' ') } : {}
}

/** The model reads the reasons. If a policy failed, the call may be allowed later. */
export function createDenial(call: Decided) {
  const denials = listEnforced(call, 'deny')
  const reasons = denials.flatMap(({ reason }) => reason ?? [])
  const isFailure = denials.every(({ failed }) => failed)
  const why = isFailure
    ? 'the policy for this call could not be read. Try again later.'
    : 'a policy denies this call.'
  const content = [`Not executed: ${why}`, ...new Set(reasons)].join(' ')
  const errorKind = isFailure ? ('transient' as const) : ('policy_denied' as const)
  return { status: 'denied' as const, content, durationMs: 0, errorKind }
}

/** A question about a call, with its approvers and the approvals so far. */
export interface Question {
  /** The terms of approval, all of which must be met. If absent, anyone may approve. */
  approvers?: readonly Approvers[]
  approvals?: readonly Approval[]
  /** The time after which the call can neither be approved nor start, in milliseconds since the epoch. */
  expiresAt?: number
  onExpiry?: Expiry['onExpiry']
}

export function isLate({ expiresAt }: Question, now: number): boolean {
  return expiresAt !== undefined && now >= expiresAt
}

export function joinExpiry(terms: readonly Expiry[]): Expiry {
  const times = terms.flatMap(({ expiresMs = 0 }) => (expiresMs > 0 ? [expiresMs] : []))
  const end = expiryEnds.findLast((one) => terms.some(({ onExpiry }) => onExpiry === one)) ?? 'reject'
  return {
    ...(times.length > 0 && { expiresMs: Math.min(...times) }),
    ...(end !== 'reject' && { onExpiry: end }),
  }
}

/** The time limit for a call's question. The terms of a policy decision replace the terms of the agent. */
export function getExpiry(call: Decided, ofAgent: Expiry = {}): Expiry {
  const asks = listEnforced(call, 'ask')
  return asks.length === 0
    ? ofAgent
    : joinExpiry(
        asks.map(({ expiresMs, onExpiry }) => ({ ...ofAgent, ...omitUndefined({ expiresMs, onExpiry }) })),
      )
}

export function createExpired({ expiresMs = 0 }: Expiry, isApproved: boolean) {
  const why = isApproved ? 'it could not start' : 'no decision arrived'
  const content = `Not executed: ${why} within ${formatTime(expiresMs)}. This is not a refusal.`
  return { status: 'expired' as const, content, durationMs: 0 }
}

function formatTime(ms: number): string {
  const [size, unit] = units.find(([whole]) => ms % whole === 0) ?? [1, 'millisecond']
  return `${ms / size} ${unit}${ms === size ? '' : 's'}`
}

const units = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1000, 'second'],
] as const

export function listApprovers(call: Decided, ofAgent: readonly Approvers[] = []): readonly Approvers[] {
  return [...ofAgent, ...listEnforced(call, 'ask').flatMap(({ approvers }) => approvers ?? [])]
}

type Requesters = readonly Principal[] | undefined

/** Whether a person may approve. Terms that restrict people require a known person and known requesters. */
function mayApprove(terms: Approvers, by: Principal | undefined, requesters: Requesters): boolean {
  const { ids, roles, count = 1, notRequester } = terms
  if (by === undefined) return ids === undefined && roles === undefined && count === 1 && !notRequester
  if (notRequester && (requesters === undefined || requesters.some(({ id }) => id === by.id))) return false
  if (ids === undefined && roles === undefined) return true
  return ids?.includes(by.id) === true || by.roles?.some((role) => roles?.includes(role)) === true
}

/** Whether all terms are met. Each approval must be from a different person. */
export function isApproved({ approvers = [], approvals = [] }: Question, requesters: Requesters): boolean {
  if (approvals.length === 0) return false
  return approvers.every(
    (terms) => approvals.filter(({ by }) => mayApprove(terms, by, requesters)).length >= (terms.count ?? 1),
  )
}

/** Adds an approval. An edit voids earlier approvals, so the editor alone must meet all terms. */
export function addApproval(
  { approvals = [] }: Question,
  approval: Approval,
  isEdit: boolean,
): readonly Approval[] {
  return isEdit ? [approval] : [...approvals, approval]
}

export interface Vote {
  type: 'APPROVE' | 'REJECT'
  by?: Principal
  arguments?: unknown
}

/** Why an answer is not accepted, or null. Both approvers and requesters may reject a call. */
export function findAnswerFault(
  question: Question,
  { type, by, arguments: edited }: Vote,
  requesters: Requesters,
  now: number,
): 'not_an_approver' | 'already_answered' | 'needs_others' | 'approval_expired' | null {
  const { approvers = [], approvals = [] } = question
  if (isLate(question, now)) return 'approval_expired'
  if (approvers.length === 0) return null
  if (type === 'REJECT') {
    const mayReject = (terms: Approvers): boolean =>
      mayApprove({ ...terms, notRequester: false, count: 1 }, by, requesters)
    return approvers.some(mayReject) ? null : 'not_an_approver'
  }
  if (!approvers.some((terms) => mayApprove(terms, by, requesters))) return 'not_an_approver'
  if (edited !== undefined)
    return isApproved({ approvers, approvals: [{ at: 0, ...(by && { by }) }] }, requesters)
      ? null
      : 'needs_others'
  return by && approvals.some((one) => one.by?.id === by.id) ? 'already_answered' : null
}
