import { initialTransition, type SnapshotFrom, transition } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import type { JournalEntry } from '../../src/index.js'

/** Replays a journal with only the pure machine. */
export function fold(entries: readonly JournalEntry[]): SnapshotFrom<typeof agentMachine> {
  const [first, ...rest] = entries
  if (first?.type !== 'start') throw new Error('A journal begins with the start of its run.')
  let [state] = initialTransition(agentMachine, first.input)
  for (const entry of rest) {
    if (entry.type === 'event') [state] = transition(agentMachine, state, entry.event)
  }
  return state
}
