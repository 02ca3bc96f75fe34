import type { BatchCall, ToolResult } from './batch-calls.js'

/** How strict each decision of a policy is. */
const strictness = { allow: 0, ask: 1, deny: 2 } as const

export type DecisionKind = keyof typeof strictness

/** The decision of one policy about a call, as the log stores it. */
export interface PolicyVerdict {
  /** The id of the policy. */
  policy: string
  decision: DecisionKind
  rule?: string
  reason?: string
  /** Recorded only. */
  shadow?: true
  /** The policy threw, timed out or returned an invalid decision. */
  failed?: true
}

type Decided = Pick<BatchCall, 'decisions'>

function listEnforced({ decisions = [] }: Decided): PolicyVerdict[] {
  return decisions.filter(({ shadow }) => !shadow)
}

/** The strictest decision. Null without a policy that counts. */
export function findStrictest(call: Decided): DecisionKind | null {
  return listEnforced(call).reduce<DecisionKind | null>(
    (most, { decision }) => (most !== null && strictness[most] >= strictness[decision] ? most : decision),
    null,
  )
}

export function isDenied(call: Decided): boolean {
  return call.decisions !== undefined && findStrictest(call) === 'deny'
}

/** Why policies ask for approval. Empty without a reason. */
export function getAskReason(call: Decided): { reason?: string } {
  const reasons = listEnforced(call).flatMap(({ decision, reason }) =>
    decision === 'ask' && reason !== undefined ? [reason] : [],
  )
  return reasons.length > 0 ? { reason: [...new Set(reasons)].join(' ') } : {}
}

/** The result of a denied call. The model reads the reasons. A failed policy may allow the call later. */
export function createDenial(call: Decided): ToolResult {
  const denials = listEnforced(call).filter(({ decision }) => decision === 'deny')
  const reasons = denials.flatMap(({ reason }) => (reason === undefined ? [] : [reason]))
  const isFailure = denials.every(({ failed }) => failed)
  const why = isFailure
    ? 'the policy for this call could not be read. Try again later.'
    : 'a policy denies this call.'
  return {
    status: 'denied',
    errorKind: isFailure ? 'transient' : 'policy_denied',
    content: [`Not executed: ${why}`, ...new Set(reasons)].join(' '),
    durationMs: 0,
  }
}
