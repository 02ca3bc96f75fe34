import type { FoldedSession } from '../core/sessions/fold-session.js'
import type { InstructionsView } from './protocol.js'

/** What the model was told at that point: a fork's own instructions stand before those of a step, and these before the agent's. */
export function findToldInstructions(
  { run, state }: Pick<FoldedSession, 'run' | 'state'>,
  own: string | undefined,
): Omit<InstructionsView, 'forkAt'> | null {
  const forked = (run?.context ?? state).terms?.instructions
  if (forked !== undefined) return { text: forked, from: 'fork' }
  const planned = run?.context.plan?.instructions
  if (planned !== undefined) return { text: planned, from: 'step' }
  return own ? { text: own, from: 'agent' } : null
}
