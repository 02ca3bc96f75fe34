import { resolve } from 'node:path'
import { StatewrightError } from '../errors.js'
import { memoryStore } from '../stores/memory-store.js'
import { openStore } from '../stores/open-store.js'
import { StoreError } from '../stores/store-error.js'
import type { SessionStore } from '../stores/store.js'
import { printable } from '../format/words.js'
import type { CliIO } from './command.js'

/** Where the sessions of a command are. */
export interface OpenedStore {
  store: SessionStore
  /** Whether they are there when the command has ended. */
  isKept: boolean
}

/**
 * The store that `--store` names, else STATEWRIGHT_STORE, else the folder of this user.
 * @throws {StatewrightError} when it cannot be used
 */
export async function openSessionStore(url: string | undefined, io: CliIO): Promise<SessionStore> {
  return openStore(named(url, io) ?? `file:${await folderOf(io)}`)
}

/** The same for a run, which can do without the folder of this user: its session then stays in memory. */
export async function openStoreForRun(url: string | undefined, io: CliIO): Promise<OpenedStore> {
  const wanted = named(url, io)
  if (wanted !== undefined) return { store: await openStore(wanted), isKept: !/^memory:$/i.test(wanted) }
  try {
    return { store: await openStore(`file:${await folderOf(io)}`), isKept: true }
  } catch (error) {
    if (!(error instanceof StatewrightError)) throw error
    io.stderr.write(`statewright: ${printable(error.message)} This session stays in memory.\n`)
    return { store: memoryStore(), isKept: false }
  }
}

export async function withSessionStore<Value>(
  url: string | undefined,
  io: CliIO,
  use: (store: SessionStore) => Promise<Value>,
): Promise<Value> {
  const store = await openSessionStore(url, io)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** A folder is relative to where the person stands. */
function named(url: string | undefined, { env, cwd }: CliIO): string | undefined {
  const given = url ?? (env.STATEWRIGHT_STORE?.trim() || undefined)
  return given?.replace(/^file:(?!\/\/)(.+)$/is, (_all, folder: string) => `file:${resolve(cwd, folder)}`)
}

async function folderOf(io: CliIO): Promise<string> {
  const folder = await io.dataFolder()
  if (folder !== null) return folder
  throw new StoreError(
    'store_unavailable',
    'This user has no home, so there is no folder for sessions. Name one: --store file:DIR, or STATEWRIGHT_STORE.',
  )
}
