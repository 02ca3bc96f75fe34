import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { type Agent, type AgentContext, type SessionMessage, StatewrightError } from '../../src/index.js'
import { answerTo, grantWith, type Hands, type Manner, nextApprover } from '../chaos/deeds.js'
import { timed } from '../chaos/play.js'
import type { World } from '../chaos/world.js'

/** A message sent at some moment, without a handle of the run. */
export const tellings = {
  steer: { type: 'steer', text: 'Told from elsewhere.' },
  cancel: { type: 'cancel', why: 'Enough.' },
  grant: { type: 'grant', tool: 'pay', when: {}, uses: 2, by: 'person 9' },
  revoke: { type: 'revoke', grant: 'every grant' },
  queue: { type: 'message', when: 'next', input: 'Told from elsewhere.' },
} as const satisfies Record<string, SessionMessage>

/** Sends it to the session. Undefined if the run cannot accept it. */
export async function tellFrom(elsewhere: Agent, world: World, message: SessionMessage, broken: string[]) {
  try {
    if (message.type !== 'revoke') return (await timed(world, elsewhere.send('chaos', message), true)).status
    const { grants = [] } = await timed(world, elsewhere.replay('chaos'), true)
    for (const { id } of grants)
      await timed(world, elsewhere.send('chaos', { type: 'revoke', grant: id }), true)
    return undefined
  } catch (error) {
    if (error instanceof StatewrightError && error.code !== '' && error.message !== '') return undefined
    broken.push(`tell ${message.type} threw ${String(error instanceof Error ? error.stack : error)}`)
    return undefined
  }
}

/**
 * Answers the run's pending requests, like `attend` on its handle. True if a process must resume the session.
 */
export async function answerFrom(
  elsewhere: Agent,
  { world, run }: Hands,
  manner: Manner,
  broken: string[],
): Promise<boolean> {
  const statuses: unknown[] = []
  for (const message of dueIn(run.snapshot() as Standing, manner, world)) {
    statuses.push(await tellFrom(elsewhere, world, message, broken))
  }
  return statuses.some((status) => status === 'waiting' || status === 'applied')
}

export interface Standing {
  context: AgentContext
  value: unknown
}

/** A message to an idle run. */
export function dueIn({ context, value }: Standing, manner: Manner, world: World): SessionMessage[] {
  if (context.state === 'PAUSED') return [{ type: 'resume' }]
  if (JSON.stringify(value).includes('message'))
    return [world.below(2) === 0 ? { type: 'reply', input: 'And?' } : { type: 'cancel' }]
  return listAnswerableCalls(context).flatMap(
    ({ callId, needs, hosted, fingerprint, ...terms }): SessionMessage[] => {
      if (needs === 'client') return [{ type: 'toolOutput', callId, fingerprint, value: 'from the client' }]
      if (needs === 'elicitation')
        return [{ type: 'toolOutput', callId, fingerprint, value: answerTo(manner) }]
      const by = nextApprover(terms)
      if (manner === 'reject') return [{ type: 'reject', callId, fingerprint, why: 'No.', ...by }]
      const answer = {
        type: 'approve',
        callId,
        fingerprint,
        ...by,
        ...(manner === 'edit' && !hosted && { editedInput: { n: 3 } }),
        ...(manner === 'grant' && grantWith({ hosted, ...terms })),
      } as const
      return manner === 'answer twice' ? [answer, answer] : [answer]
    },
  )
}
