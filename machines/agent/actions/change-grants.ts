import { toAction } from '../update-action.js'
import { changeGrants, findRevokedGrant, readNewGrant, withoutGrants } from '../grants.js'
import { listRequests } from '../to-result.js'
import { findOwnApproval, withoutApproval } from '../votes.js'
import { announceOutcome } from './call-results.js'

export const takeGrant = toAction((context, event, emit) => {
  const grant = readNewGrant(context, event)
  if (grant === undefined) return undefined
  emit({ type: 'grant_changed', grant, change: 'given' })
  return { grants: changeGrants(context, event) }
})

export const revokeGrant = toAction((context, event, emit) => {
  const revoked = findRevokedGrant(context, event)
  if (revoked === undefined) return undefined
  emit({ type: 'grant_changed', grant: revoked, change: 'revoked' })
  return { grants: changeGrants(context, event) }
})

/** Ends the grant of a call that could not start, so that a person decides. */
export const endGrant = toAction((context, event) =>
  event.type === 'GRANT_ENDED' ? withoutGrants(context, [event.callId], { ungranted: true }) : undefined,
)

/** Withdraws an approval. A call that was already approved waits for approval again. */
export const revokeApproval = toAction((context, event, emit) => {
  const own = findOwnApproval(context, event)
  if (own === undefined) return undefined
  const { call, question } = own
  const calls = withoutApproval(context.calls, own)
  if (!question) announceOutcome(context, call, 'revoked', event, emit)
  if (context.state === 'WAITING_FOR_INPUT')
    for (const request of listRequests({ ...context, calls: calls.filter(({ id }) => id === call.id) }))
      emit(request)
  return { calls }
})
