import type { Message } from '../../../machines/agent/messages.js'
import { isRecord } from '../../../guards/lib/stored.js'

/** How a run leaves the branch that its session is on: its start record says so. */
export interface BranchStart {
  /** How many messages of the transcript the new branch keeps. */
  keep: number
  /** The run says the message after those once more: its answer is another. Absent: it says another message. */
  regenerate?: true
  /** What tells the request from others: when it comes again, it makes no second branch. */
  key?: string
}

/** A branch of a session, as the log keeps it. */
export interface StoredBranch {
  /** The branch that it parts from, by its number; null for the first. */
  parent: number | null
  /** How many messages it shares with that branch. */
  at: number
  regenerate?: true
  key?: string
  /** The last record of the session that is of this branch; null while the session is on it. */
  end: number | null
  /** The clients' ids of the messages that are not on its parent. Known once the session has left it. */
  clientIds: string[]
}

/** The branches of a session. Their numbers count from 1. */
export interface BranchTree {
  /** The branch that the session is on. */
  current: number
  branches: StoredBranch[]
}

/** How many branches a session may have. */
export const maxBranches = 100

const firstBranch: StoredBranch = { parent: null, at: 0, end: null, clientIds: [] }

/** The branches of a session that has never parted: one. */
export const unbranched: BranchTree = { current: 1, branches: [firstBranch] }

export function getBranch({ current, branches }: BranchTree, number = current): StoredBranch {
  return branches[number - 1] ?? firstBranch
}

/** The tree once a run has begun a new branch with record `seq`. `messages`: the transcript that it leaves. */
export function addBranch(
  tree: BranchTree,
  { keep, regenerate, key }: BranchStart,
  { messages, seq }: { messages: readonly Message[]; seq: number },
): BranchTree {
  const added: StoredBranch = {
    parent: tree.current,
    at: regenerate ? keep + 1 : keep,
    ...(regenerate && { regenerate: regenerate }),
    ...(key !== undefined && { key }),
    end: null,
    clientIds: [],
  }
  const branches = [...endCurrent(tree, { messages, seq }), added]
  return { current: branches.length, branches }
}

/** The tree once record `seq` has put the session back on a branch. */
export function returnToBranch(
  tree: BranchTree,
  number: number,
  left: { messages: readonly Message[]; seq: number },
): BranchTree {
  const branches = endCurrent(tree, left).map((one, i) => (i === number - 1 ? { ...one, end: null } : one))
  return { current: number, branches }
}

/** The branches when the session leaves the one that it is on. */
function endCurrent(
  { current, branches }: BranchTree,
  { messages, seq }: { messages: readonly Message[]; seq: number },
): StoredBranch[] {
  return branches.map((one, i) =>
    i === current - 1 ? { ...one, end: seq - 1, clientIds: listClientIds(messages.slice(one.at)) } : one,
  )
}

function listClientIds(messages: readonly Message[]): string[] {
  return messages.flatMap(({ role, data }) => {
    const id = role === 'user' ? data?.['clientId'] : undefined
    return typeof id === 'string' ? [id] : []
  })
}

/** A place of a transcript from which the branches of its session differ. */
export interface BranchPoint {
  /** The index of the first message that differs; the length of the transcript where this branch has none. */
  at: number
  /** Which of the variants this is, from 1: the oldest is the first. */
  position: number
  /** How many variants there are. */
  count: number
  /** For each variant the branch that shows it, in order. */
  branches: number[]
}

/** Where the transcript of a branch parts from other branches, in order. */
export function listBranchPoints(tree: BranchTree, number = tree.current): BranchPoint[] {
  const places = [...new Set(tree.branches.slice(1).map(({ at }) => at))].toSorted((a, b) => a - b)
  return places.flatMap((at) => {
    const stem = findStem(tree, number, at)
    const group = tree.branches.map((_, i) => i + 1).filter((one) => findStem(tree, one, at) === stem)
    const owners = [...new Set(group.map((one) => findOwner(tree, one, at)))].toSorted((a, b) => a - b)
    if (owners.length < 2) return []
    const branches = owners.map((owner) => {
      const through = group.filter((one) => findOwner(tree, one, at) === owner)
      return chooseBranch(through, [number, tree.current])
    })
    return [{ at, position: owners.indexOf(findOwner(tree, number, at)) + 1, count: owners.length, branches }]
  })
}

/** Of the branches that go through a variant, the one to show: one that is shown already, or the latest. */
function chooseBranch(through: readonly number[], shown: readonly number[]): number {
  return shown.find((one) => through.includes(one)) ?? Math.max(...through)
}

/** The branch that has the messages before this place: where branches have the same, they share all of them. */
function findStem(tree: BranchTree, number: number, at: number): number {
  const { parent, at: from } = getBranch(tree, number)
  return parent !== null && from >= at ? findStem(tree, parent, at) : number
}

/** The branch that has the message at this place. */
function findOwner(tree: BranchTree, number: number, at: number): number {
  const { parent, at: from } = getBranch(tree, number)
  return parent !== null && from > at ? findOwner(tree, parent, at) : number
}

/** Whether a stored value is a tree of branches. */
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
