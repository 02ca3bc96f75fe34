import type { Message } from '../../../machines/agent/messages.js'
import { isRecord } from '../../../guards/lib/stored.js'
import { listUserIds } from './inbox/queued-message.js'

/** How a run starts a branch, as stored in its start record. */
export interface BranchStart {
  /** Number of transcript messages that the new branch keeps. */
  keep: number
  /** Repeats the next user message to get another answer. Absent if the run starts with a different message. */
  regenerate?: true
  /** Idempotency key of the request. */
  key?: string
}

/** A branch as stored in the log. */
export interface StoredBranch {
  /** Number of the parent branch. Null for the first branch. */
  parent: number | null
  /** Number of messages that the branch shares with its parent. */
  at: number
  regenerate?: true
  key?: string
  /** The last record of this branch. Null for the current branch. */
  end: number | null
  /** Client ids of the messages that are not on the parent branch. Set when the session leaves this branch. */
  clientIds: string[]
}

/** The branches of a session, numbered from 1. */
export interface BranchTree {
  current: number
  branches: StoredBranch[]
}

export const maxBranches = 100

const firstBranch: StoredBranch = { parent: null, at: 0, end: null, clientIds: [] }

export const unbranched: BranchTree = { current: 1, branches: [firstBranch] }

export function getBranch({ current, branches }: BranchTree, number = current): StoredBranch {
  return branches[number - 1] ?? firstBranch
}

/** Starts a branch at record `seq`. `messages` is the transcript of the current branch. */
export function addBranch(
  tree: BranchTree,
  { keep, regenerate, key }: BranchStart,
  left: LeftBranch,
): BranchTree {
  const added: StoredBranch = {
    parent: tree.current,
    at: regenerate ? keep + 1 : keep,
    ...(regenerate && { regenerate }),
    ...(key !== undefined && { key }),
    end: null,
    clientIds: [],
  }
  const branches = [...endCurrent(tree, left), added]
  return { current: branches.length, branches }
}

export function returnToBranch(tree: BranchTree, number: number, left: LeftBranch): BranchTree {
  const branches = endCurrent(tree, left).map((one, i) => (i === number - 1 ? { ...one, end: null } : one))
  return { current: number, branches }
}

interface LeftBranch {
  messages: readonly Message[]
  /** The record that leaves the branch. */
  seq: number
}

function endCurrent({ current, branches }: BranchTree, { messages, seq }: LeftBranch): StoredBranch[] {
  return branches.map((one, i) =>
    i === current - 1 ? { ...one, end: seq - 1, clientIds: listUserIds(messages.slice(one.at)) } : one,
  )
}

/** An index in a transcript where branches diverge. */
export interface BranchPoint {
  /** Index of the first message that differs, or the length of the transcript. */
  at: number
  /** Position of this variant, from 1, oldest first. */
  position: number
  count: number
  /** The branch to show for each variant. */
  branches: number[]
}

export function listBranchPoints(tree: BranchTree, number = tree.current): BranchPoint[] {
  const places = [...new Set(tree.branches.slice(1).map(({ at }) => at))].toSorted((a, b) => a - b)
  return places.flatMap((at) => {
    const stem = findStem(tree, number, at)
    const group = tree.branches.map((_, i) => i + 1).filter((one) => findStem(tree, one, at) === stem)
    const owners = [...new Set(group.map((one) => findOwner(tree, one, at)))].toSorted((a, b) => a - b)
    if (owners.length < 2) return []
    const branches = owners.map((owner) => {
      const through = group.filter((one) => findOwner(tree, one, at) === owner)
      // The shown branch if it has the variant, otherwise the variant's latest branch.
      return [number, tree.current].find((one) => through.includes(one)) ?? Math.max(...through)
    })
    return [{ at, position: owners.indexOf(findOwner(tree, number, at)) + 1, count: owners.length, branches }]
  })
}

/** The branch that owns the messages before this index. Branches with the same stem share all of these. */
function findStem(tree: BranchTree, number: number, at: number): number {
  const { parent, at: from } = getBranch(tree, number)
  return parent !== null && from >= at ? findStem(tree, parent, at) : number
}

function findOwner(tree: BranchTree, number: number, at: number): number {
  const { parent, at: from } = getBranch(tree, number)
  return parent !== null && from > at ? findOwner(tree, parent, at) : number
}

export function isBranchTree(value: unknown): value is BranchTree {
  if (!isRecord(value) || !Array.isArray(value['branches'])) return false
  const { current, branches } = value as { current: unknown; branches: unknown[] }
  const isNumber = (one: unknown): one is number => Number.isSafeInteger(one) && (one as number) >= 0
  const isBranch = (one: unknown, i: number): boolean =>
    isRecord(one) &&
    (one['parent'] === null ? i === 0 : isNumber(one['parent']) && one['parent'] <= i && one['parent'] > 0) &&
    isNumber(one['at']) &&
    (one['end'] === null || isNumber(one['end'])) &&
    Array.isArray(one['clientIds'])
  return isNumber(current) && current >= 1 && current <= branches.length && branches.every(isBranch)
}
