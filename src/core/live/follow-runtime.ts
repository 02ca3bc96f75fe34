import type { FoldedRun } from '../sessions/fold-session.js'
import type { JournalEntry } from '../sessions/journal.js'
import type { AgentRuntime } from './runtime.js'

/** Is told what a log would keep of an actor. It never throws. */
export interface ActorFollower {
  /** Called before the entry is applied. */
  onEntry(entry: JournalEntry): void
  /** Called with the state that the last entry has led to. */
  onReached(reached: FoldedRun): void
}

/** Tells of what an agent's actor takes from now on, beside its journal if it has one; what it returns ends that. */
export function followRuntime({ binding }: AgentRuntime, follower: ActorFollower): () => void {
  const { journal } = binding
  let isOver = false
  const followed = {
    append: (entry: JournalEntry) => {
      journal?.append(entry)
      if (!isOver) follower.onEntry(entry)
    },
    flush: () => journal?.flush(),
    checkHeld: () => journal?.checkHeld?.(),
    get hasFailed() {
      return journal?.hasFailed === true
    },
    onReached: (reached: FoldedRun) => {
      journal?.onReached?.(reached)
      if (!isOver) follower.onReached(reached)
    },
  }
  binding.journal = followed
  return () => {
    isOver = true
    if (binding.journal === followed) binding.journal = journal
  }
}
