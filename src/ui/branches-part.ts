import type { BranchPoint } from '../core/sessions/branch-tree.js'

/** What a page is told of a message that other branches have otherwise. */
export interface BranchesPart {
  type: 'data-branches'
  id: 'branches'
  data: Pick<BranchPoint, 'position' | 'count' | 'branches'>
}

export function toBranchesPart({ position, count, branches }: BranchPoint): BranchesPart {
  return { type: 'data-branches', id: 'branches', data: { position, count, branches } }
}
