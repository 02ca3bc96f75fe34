import type { MachinePath } from '../machine-path.js'
import type { ContextParting } from './context-parting.js'
import type { MachineDifferenceKind, Side } from './machine-pair.js'

/** A transition that changed, and the shortest way to see it. */
export interface MachineDifference {
  /** What differs first: the state that is reached, what is emitted, or the output. */
  kind: MachineDifferenceKind
  /** The transition that the machine takes before and after; null where it takes none. The same: it does something else. */
  transition: Record<Side, string | null>
  /** The same as a sentence. */
  title: string
  /** The events, and where they lead before the change. */
  before: MachinePath
  /** The same events after the change. */
  after: MachinePath
  /** Where the contexts part, when that is before the states do: often the cause. */
  contexts: ContextParting | null
  /** Title and trace, to print. */
  toString(): string
}

/** How two versions of a machine differ. */
export interface MachineDiff {
  /** The shortest trace of each change, the shortest first. Empty: they behave alike. */
  differences: MachineDifference[]
  /** Pairs of states that were compared. */
  pairs: number
  /** Why not all pairs were compared; null when they were. */
  bounded: string | null
  /** Transitions that only one of the charts declares. */
  declared: { added: string[]; removed: string[] }
  /** All of it, to print. */
  toString(): string
}
