import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { between } from './random.mjs'

const fileOf = (dir) => join(dir, 'sessions.db-wal')

/** Cuts SQLite's write-ahead file at any byte. */
export function tear(dir, random) {
  truncateSync(fileOf(dir), between(random, 0, readFileSync(fileOf(dir)).length - 1))
}

/** Damages only its last transaction, from any byte on: cut off or overwritten. */
export function tearLast(dir, random) {
  const bytes = readFileSync(fileOf(dir))
  const [from, to] = commitsIn(bytes).slice(-2)
  const at = between(random, from, to - 1)
  if (random() < 0.5) truncateSync(fileOf(dir), at)
  else
    writeFileSync(
      fileOf(dir),
      bytes.map((byte, i) => (i >= at ? byte ^ between(random, 1, 255) : byte)),
    )
}

/**
 * Transactions end after frames that contain the database size
 * (https://sqlite.org/fileformat2.html#walformat).
 */
function commitsIn(bytes) {
  const frame = 24 + bytes.readUInt32BE(8)
  const ends = [32]
  for (let at = 32; at + frame <= bytes.length; at += frame) {
    if (bytes.readUInt32BE(at + 4) !== 0) ends.push(at + frame)
  }
  return ends
}
