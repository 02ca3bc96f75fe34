import type { SessionView } from './protocol.js'

/** Two sessions beside each other: what `GET /api/compare` answers. */
export interface CompareView {
  a: SessionView
  b: SessionView
  /** The number of common messages and records at the beginning. */
  commonRecords: number
  commonMessages: number
  /** What the fork was told instead; null where no part of it was changed. */
  change: CompareChange | null
  steps: { step: number; a: CompareStep | null; b: CompareStep | null; isSame: boolean }[]
}

export interface CompareChange {
  kind: 'message' | 'arguments' | 'result' | 'instructions' | 'decision'
  /** The tool of the call. */
  name: string | null
  a: string
  b: string
}

export interface CompareStep {
  seq: number
  /** What users said since the answer before. */
  said: string
  text: string
  calls: { name: string; arguments: string; result: string | null }[]
  tokens: number
  cost: number | null
  ms: number
}
