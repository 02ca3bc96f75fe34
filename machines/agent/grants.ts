import { omitUndefined } from '../../guards/lib/json.js'
import { type Approval, isApproved, isLate, listApprovers } from './approvals.js'
import type { BatchCall } from './batch-calls.js'
import { type AgentContext, type AgentMachineEvent, getEventTime } from './context.js'
import { allowsArguments, type Grant, isGrantOver, type NewGrant } from './grant.js'

type GrantScope = Pick<AgentContext, 'calls' | 'grants' | 'speaker' | 'approvers' | 'requesters'>

export function isGrantEnded({ grants }: Pick<AgentContext, 'grants'>, call: BatchCall, now: number) {
  if (call.grant === undefined) return false
  const grant = grants?.find(({ id }) => id === call.grant)
  return grant === undefined || isGrantOver({ ...grant, uses: 1 }, now)
}

/** Only people decide on interrupted calls and on calls that a provider or a client runs. */
function isGrantable(call: BatchCall, now: number): boolean {
  const { needs, result, hosted, client, interrupted, ungranted, unscreenedArguments, undecided } = call
  const isAsked = needs === 'approval' && result === undefined && !unscreenedArguments && !undecided
  return isAsked && !(hosted || client || interrupted || ungranted || isLate(call, now))
}

function covers({ speaker, approvers, requesters }: GrantScope, grant: Grant, call: BatchCall): boolean {
  return (
    grant.tool === call.name &&
    (grant.speaker ?? null) === speaker &&
    allowsArguments(grant, call) &&
    isApproved({ approvers: listApprovers(call, approvers), approvals: grant.givers }, requesters)
  )
}

/** The calls that grants allow to start, each with its grant, and the grants after these uses have been counted. */
export function applyGrants(
  context: GrantScope,
  now: number,
): { granted: Map<BatchCall, Grant>; grants: readonly Grant[] } {
  const granted = new Map<BatchCall, Grant>()
  let { grants = [] } = context
  for (const call of context.calls) {
    if (!isGrantable(call, now)) continue
    const at = grants.findIndex((grant) => !isGrantOver(grant, now) && covers(context, grant, call))
    const grant = grants[at]
    if (grant === undefined) continue
    const used = grant.uses === undefined ? grant : { ...grant, uses: grant.uses - 1 }
    grants = grants.with(at, used)
    granted.set(call, used)
  }
  return { granted, grants }
}

export function hasGrantedCalls(context: GrantScope, now: number): boolean {
  return context.grants !== undefined && applyGrants(context, now).granted.size > 0
}

export function toGrantedCall({ approvals: _votes, ...call }: BatchCall, { id }: Grant): BatchCall {
  return { ...call, needs: 'nobody', approved: true, grant: id }
}

/** The calls that did not start need approval again, and their uses do not count. */
export function withoutGrants(
  { calls, grants = [] }: Pick<AgentContext, 'calls' | 'grants'>,
  callIds: readonly string[],
  marks: { ungranted?: true } = {},
): { calls: BatchCall[]; grants?: readonly Grant[] } {
  let left = grants
  const changed = calls.map((call) => {
    if (call.grant === undefined || call.result !== undefined || !callIds.includes(call.id)) return call
    const { started: _started, approved: _approved, grant: used, ...open } = call
    left = left.map((one) =>
      one.id === used && one.uses !== undefined ? { ...one, uses: one.uses + 1 } : one,
    )
    return { ...open, needs: 'approval' as const, ...marks }
  })
  return { calls: changed, ...(left !== grants && { grants: left }) }
}

/** The grant that an event creates, or undefined. A grant from an approval includes the people who approved the call. */
export function readNewGrant(
  context: Pick<AgentContext, 'speaker'>,
  event: AgentMachineEvent,
  approved?: { call: BatchCall; approvals: readonly Approval[] },
): Grant | undefined {
  if (event.type === 'GRANT') {
    const giver = { ...omitUndefined({ by: event.by }), at: getEventTime(event) }
    return toGrant(context, event.grant, { tool: event.tool, givers: [giver] })
  }
  if (event.type !== 'APPROVE' || event.grant === undefined || approved === undefined) return undefined
  const { call, approvals: givers } = approved
  // Shields screen edited arguments later.
  const isUnseen = call.unscreenedArguments && event.grant.when === undefined
  if (call.hosted || call.needs === 'client' || isUnseen) return undefined
  const exact = event.grant.when ? undefined : call.arguments
  return toGrant(context, event.grant, { tool: call.name, ...omitUndefined({ arguments: exact }), givers })
}

function toGrant(
  { speaker }: Pick<AgentContext, 'speaker'>,
  grant: NewGrant,
  of: Pick<Grant, 'tool' | 'arguments' | 'givers'>,
): Grant {
  return { ...grant, ...of, ...(speaker !== null && { speaker }) }
}

/** The grants after an event, also after the end of a run. */
export function changeGrants(context: AgentContext, event: AgentMachineEvent): readonly Grant[] {
  const grant = readNewGrant(context, event)
  if (grant) return addGrant(context, grant, getEventTime(event))
  const { grants = [] } = context
  const revoked = findRevokedGrant(context, event)
  return grants.filter((one) => one !== revoked)
}

export function findRevokedGrant(
  { grants }: Pick<AgentContext, 'grants'>,
  event: AgentMachineEvent,
): Grant | undefined {
  if (event.type !== 'REVOKE' || !('grant' in event)) return undefined
  return grants?.find(({ id }) => id === event.grant)
}

/** Adds a grant. Grants that have ended are dropped, unless a call in the batch uses one. */
export function addGrant(
  { grants = [], calls }: Pick<AgentContext, 'grants' | 'calls'>,
  grant: Grant,
  now: number,
): readonly Grant[] {
  const isKept = (one: Grant): boolean =>
    one.id !== grant.id && (!isGrantOver(one, now) || calls.some((call) => call.grant === one.id))
  return [...grants.filter(isKept), grant]
}
