import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from 'statewright/stores/file'
import { checkSessionLog } from 'statewright/testing'
import { createCrashAgent, effectsFile } from './agent.mjs'
import { mayRunTwice } from './script.mjs'

/** Reads a folder in place, because the next process would repair the same. */
export async function withStore(dir, read) {
  const store = fileStore({ dir })
  try {
    return await read(store)
  } finally {
    store.close()
  }
}

/**
 * The content of a folder between two processes. Inspects a copy, because opening the store itself would
 * repair data that the next process has to repair.
 */
export async function look(dir) {
  const copy = mkdtempSync(join(tmpdir(), 'statewright-look-'))
  cpSync(dir, copy, { recursive: true })
  const store = fileStore({ dir: copy })
  try {
    const records = store.read('s')
    const agent = createCrashAgent({ dir: copy, baseURL: 'http://127.0.0.1:1', store })
    const replayed = records.length > 0 ? await agent.replay('s') : null
    const before = records.length > 2 ? await agent.replay('s', { to: records.length - 1 }) : null
    return {
      records,
      /** The reference model's problem with the log, or null. */
      violation: records.length > 0 ? checkSessionLog(records, 's') : null,
      effects: effectsIn(dir),
      inbox: store.inbox.read('s'),
      result: replayed?.run ?? null,
      /** Whether the run has ended, and whether it had one record earlier. */
      ended: replayed?.snapshot?.status === 'done',
      endedBefore: before?.snapshot?.status === 'done',
      place: replayed ? placeOf(replayed.snapshot.value) : 'no session yet',
      durable: records.flatMap(resultsIn),
      inDoubt: replayed ? inDoubtIn(replayed.snapshot.context) : [],
    }
  } finally {
    store.close()
    rmSync(copy, { recursive: true, force: true })
  }
}

/** The tools' effects, in order. */
export function effectsIn(dir) {
  if (!existsSync(effectsFile(dir))) return []
  return readFileSync(effectsFile(dir), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

function placeOf(value) {
  if (typeof value === 'string') return value
  const [name, inside] = Object.entries(value)[0]
  return `${name}.${placeOf(inside)}`
}

/** The calls whose results a record holds. */
function resultsIn({ type, data }) {
  const { event } = JSON.parse(data)
  return type === 'event' && event.type === 'TOOL_RESULT' ? [event.callId] : []
}

/** Calls that were running when the process died, have no result, and must not run again. */
function inDoubtIn({ calls, state }) {
  if (state !== 'WAITING_FOR_TOOL') return []
  return calls.flatMap(({ id, started, result }) => (started && !result && !mayRunTwice(id) ? [id] : []))
}
