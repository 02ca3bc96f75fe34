import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { problemsOf } from './checks.mjs'
import { freeDisk } from './faults.mjs'
import { look } from './look.mjs'
import { inParallel } from './pool.mjs'
import { runProcess } from './process.mjs'

/** Sessions whose store fails midway, with the problems of each. */
export async function playStorage(model, reference, isAsked) {
  const head = reference.end.records.length
  const refused = faultyCases('refuse', head)
  const cases = [{ name: 'read-only folder', play: playReadOnly }, ...refused.map(asCase)].filter(isAsked)
  const played = await inParallel(cases, 2, async ({ name, play }) => ({
    name,
    ...(await play(model, reference.result, tmpdir())),
  }))
  const full = faultyCases('fill', head).filter(isAsked)
  return full.length === 0 ? played : [...played, ...playFullDisk(reference.result, full)]
}

const asCase = (each) => ({ name: each.name, play: (...where) => playFaulty(each, ...where) })

/** A store that fails at some records. The session continues in another process or in the same one. */
function faultyCases(act, head) {
  const seqs = [1, 2, 3, 5, 12, 20, 28, head - 1]
  return seqs.flatMap((seq) =>
    [false, true].map((tryAgain) => ({
      name: `${codes[act]} at record ${seq}, ${tryAgain ? 'resumed in the same process' : 'resumed in another'}`,
      fault: { on: 'append', when: 'before', seq, act },
      tryAgain,
    })),
  )
}

const codes = { refuse: 'read_only', fill: 'disk_full' }

/** Plays a case of `faultyCases` in a folder of `parent`. */
export const playFaulty = (each, model, reference, parent) =>
  inFolder(parent, (dir) => problemsOfFaulty(each, dir, model, reference))

/** The problems that `play` finds in a new folder. The folder is kept only if there are problems. */
async function inFolder(parent, play) {
  const dir = mkdtempSync(join(parent, 'statewright-crash-'))
  const problems = await play(dir).catch((error) => [error.stack])
  if (problems.length === 0) rmSync(dir, { recursive: true })
  return { problems, dir }
}

async function problemsOfFaulty({ fault, tryAgain }, dir, model, reference) {
  const { baseURL } = model.session()
  const first = await runProcess({ dir, baseURL, fault, tryAgain })
  if (first.error) return [`it was refused: ${first.error.stack}`]
  const { outcome: failed, found } = tryAgain ? first.first : { outcome: first, found: await look(dir) }
  let outcome = first
  if (!tryAgain) {
    freeDisk(dir)
    outcome = await runProcess({ dir, baseURL })
  }
  return [
    ...failureProblems(failed, codes[fault.act]),
    ...(found.records.length < fault.seq && !found.ended ? [] : ['more was kept than was written']),
    ...problemsOf({ outcome, looks: [found], end: await look(dir), reference }),
  ]
}

/** A run whose log cannot be written ends in ERROR, once, with the store's error. */
function failureProblems({ result, ended }, code) {
  const report = { state: result.state, reason: result.reason, code: result.error?.code, ended }
  const wanted = { state: 'ERROR', reason: 'store_error', code, ended: 1 }
  return isDeepStrictEqual(report, wanted) ? [] : [`it ended as ${JSON.stringify(report)}`]
}

/** A session whose folder has become read-only when another process resumes it. */
const playReadOnly = (model, reference, parent) =>
  inFolder(parent, (dir) => problemsOfReadOnly(dir, model, reference))

async function problemsOfReadOnly(dir, model, reference) {
  const { baseURL } = model.session()
  await runProcess({ dir, baseURL, fault: { on: 'append', when: 'after', seq: 10 } })
  const before = await look(dir)
  const files = ['sessions.db', 'sessions.db-wal', 'sessions.db-shm'].map((name) => join(dir, name))
  for (const file of files) chmodSync(file, 0o444)
  chmodSync(dir, 0o555)
  const { error } = await runProcess({ dir, baseURL, withoutRights: true })
  const isTold = error?.name === 'StoreError' && error.code === 'read_only'
  chmodSync(dir, 0o700)
  for (const file of files) chmodSync(file, 0o600)
  const after = await look(dir)
  const outcome = await runProcess({ dir, baseURL })
  return [
    ...(isTold ? [] : [`resuming without rights ended with ${JSON.stringify(error)}`]),
    ...(isDeepStrictEqual(after.records, before.records) ? [] : ['the log has changed']),
    ...problemsOf({ outcome, looks: [before], end: await look(dir), reference }),
  ]
}

/** A private mount that ends with the process. The folders of failed sessions disappear with it. */
const privately = ['unshare', ...(process.getuid?.() === 0 ? [] : ['--map-root-user']), '--mount']

/** The disk fills up in the middle of a run. full-disk.mjs plays this on a small separate disk. */
function playFullDisk(result, cases) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-disk-'))
  try {
    const [command, ...rest] = [
      ...privately,
      'sh',
      '-c',
      'mount -t tmpfs -o size=6m none "$0" && exec "$@"',
      dir,
    ]
    if (spawnSync(command, [...rest, 'true']).status !== 0) {
      console.error('Not tested here: a full disk, which takes a mount (unshare --mount).')
      return []
    }
    const input = JSON.stringify({ dir, result, cases })
    const script = fileURLToPath(new URL('full-disk.mjs', import.meta.url))
    const options = { input, encoding: 'utf8', maxBuffer: 1e8, timeout: 120_000 }
    const { stdout, stderr, status } = spawnSync(command, [...rest, process.execPath, script], options)
    if (status === 0) return JSON.parse(stdout)
    return [{ name: 'disk_full', problems: [`full-disk.mjs ended with ${status}: ${stderr}`] }]
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
