import type { RecordRow } from './protocol.js'

/** A record in a film. */
export interface Scene {
  row: RecordRow
  /** How many records it stands for: of those that repeat one another the last is shown. */
  count: number
  /** How many records before it the film leaves out, and where they led. */
  skipped: number
  passed: Pick<RecordRow, 'to' | 'taken'>
  /** How long it lasts. */
  seconds: number
}

const nowhere = { to: [], taken: [] }

/** A film that has more scenes is too long to watch, and too large. */
const mostScenes = 48
/** Seconds. A scene lasts as long as the run stayed where it shows it, within bounds. */
const [shortest, longest, longestFilm] = [0.6, 2, 60]
/** Of so many records at most is what repeats; a turn of the loop has about ten, and one for each call. */
const longestBlock = 40
/** A block is one that repeats itself when it comes so often in a row. */
const fewestTimes = 3

/** The records of a session as scenes: what repeats comes once, and of a long session the middle is left out. */
export function listScenes(rows: readonly RecordRow[]): Scene[] {
  // Before the first run the machine is nowhere, and a snapshot leads nowhere.
  const shown = rows.filter(
    ({ type, from, to }) => to.length > 0 && (type !== 'snapshot' || from.join() !== to.join()),
  )
  const each = shown.map((row, place): Scene => {
    const stay = Math.max(0, ((shown[place + 1] ?? row).at - row.at) / 1_000)
    return { row, count: 1, skipped: 0, passed: nowhere, seconds: stay }
  })
  const scenes = cutMiddle(mergeBlocks(mergeBlocks(each, 1), longestBlock))
  const most = Math.min(longest, longestFilm / scenes.length)
  return scenes.map((scene) => ({ ...scene, seconds: Math.min(most, Math.max(shortest, scene.seconds)) }))
}

/** Shows once what repeats itself: blocks of at most so many scenes. */
function mergeBlocks(scenes: readonly Scene[], most: number): Scene[] {
  const names = new Map<string, number>()
  const kinds = scenes.map(({ row: { label, to, taken } }) => {
    const name = JSON.stringify([label, to, taken])
    const kind = names.get(name) ?? names.size
    names.set(name, kind)
    return kind
  })
  const merged: Scene[] = []
  let at = 0
  while (at < scenes.length) {
    const { length, times } = findBlock(kinds, at, most)
    for (let part = 0; part < length; part += 1) {
      // Of the last time: so the time and the counts go on from here.
      const scene = scenes[at + part + (times - 1) * length]
      if (scene) merged.push({ ...scene, count: sumCounts(scenes, at + part, length, times) })
    }
    at += length * times
  }
  return merged
}

/** The block that begins here and takes the most scenes with its repeats; a single scene where there is none. */
function findBlock(kinds: readonly number[], at: number, most: number): { length: number; times: number } {
  let best = { length: 1, times: 1 }
  for (let length = 1; length <= most; length += 1) {
    let same = 0
    while (at + same + length < kinds.length && kinds[at + same] === kinds[at + same + length]) same += 1
    const times = Math.floor(same / length) + 1
    const isBlock = length === 1 ? times > 1 : times >= fewestTimes
    if (isBlock && length * times > best.length * best.times) best = { length, times }
  }
  return best
}

function sumCounts(scenes: readonly Scene[], first: number, length: number, times: number): number {
  let sum = 0
  for (let turn = 0; turn < times; turn += 1) sum += scenes[first + turn * length]?.count ?? 0
  return sum
}

/** The first and the last scenes; the one after the cut says what is missing. */
function cutMiddle(scenes: readonly Scene[]): Scene[] {
  if (scenes.length <= mostScenes) return [...scenes]
  const half = mostScenes / 2
  const cut = scenes.slice(half, -half)
  const skipped = cut.reduce((sum, { count }) => sum + count, 0)
  const passed = {
    to: [...new Set(cut.flatMap(({ row }) => row.to))],
    taken: [...new Set(cut.flatMap(({ row }) => row.taken))],
  }
  return [
    ...scenes.slice(0, half),
    ...scenes.slice(-half).map((scene, i) => (i === 0 ? { ...scene, skipped, passed } : scene)),
  ]
}
