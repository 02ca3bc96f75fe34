import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ConfigError, StatewrightError } from '../core/base/errors.js'
import { memoryStore } from '../core/sessions/store/memory-store.js'
import { findFolder, openStore } from '../stores/open-store.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { scrubSecrets } from '../core/shields/scrub-secrets.js'
import { stripControls } from '../core/format/format-words.js'
import { badUsageError } from './cli-error.js'
import type { CliIO } from './command.js'
import { getErrorCode } from './load-file.js'

/** The session store of a command. */
export interface OpenedStore {
  store: SessionStore
  /** Whether sessions outlive the command. */
  isKept: boolean
}

/**
 * Opens the store of `--store`, else of STATEWRIGHT_STORE, else the user's folder. If the user's folder cannot be used, the
 * session stays in memory.
 * @throws {StatewrightError} when the named store cannot be used
 */
export async function openStoreForRun(url: string | undefined, io: CliIO): Promise<OpenedStore> {
  const wanted = resolvePlace(url, io)
  if (wanted !== undefined)
    return { store: await openNamedStore(wanted, url), isKept: !/^memory:$/i.test(wanted) }
  try {
    return { store: await openStore(`file:${await getDataFolder(io)}`), isKept: true }
  } catch (error) {
    if (!(error instanceof StatewrightError)) throw error
    io.stderr.write(`statewright: ${stripControls(error.message)} This session stays in memory.\n`)
    return { store: memoryStore(), isKept: false }
  }
}

/**
 * The same for a command that shows sessions and stays open: the user's folder may be missing, but a named folder must exist.
 * @throws {CliError} `bad_usage`
 */
export async function openStoreToShow(url: string | undefined, io: CliIO): Promise<OpenedStore> {
  const place = resolvePlace(url, io)
  if (place !== undefined && isMissing(findFolder(place))) {
    const named = nameStoreOption(url)
    throw badUsageError(
      `${named}: there is no store in ${stripControls(findFolder(place) ?? place)}. Name the folder that a program keeps them ` +
        'in, or begin one there: statewright run --store file:DIR',
      named,
    )
  }
  return openStoreForRun(url, io)
}

/**
 * The same for commands on stored sessions: a missing store counts as empty, and is not created.
 */
export async function withSessionStore<Value>(
  url: string | undefined,
  io: CliIO,
  use: (store: SessionStore) => Promise<Value>,
): Promise<Value> {
  const place = resolvePlace(url, io) ?? `file:${await getDataFolder(io)}`
  const store = isMissing(findFolder(place)) ? memoryStore() : await openNamedStore(place, url)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** The error for a text that names no store names its option, and may say what the person meant: a folder. */
async function openNamedStore(place: string, url: string | undefined): Promise<SessionStore> {
  try {
    return await openStore(place)
  } catch (error) {
    if (!(error instanceof ConfigError && error.code === 'invalid_store')) throw error
    const named = nameStoreOption(url)
    const folder = /^[\w./~-]+$/.test(place) ? ` For the folder '${place}': file:${place}` : ''
    throw badUsageError(`${named}: ${error.message}${folder}`, named, { cause: error })
  }
}

function nameStoreOption(url: string | undefined): string {
  return url === undefined ? 'STATEWRIGHT_STORE' : '--store'
}

/** A relative folder is resolved against the working directory. */
function resolvePlace(url: string | undefined, { env, cwd }: CliIO): string | undefined {
  const given = url ?? (env.STATEWRIGHT_STORE?.trim() || undefined)
  return given?.replace(/^file:(?!\/\/)(.+)$/is, (_all, folder: string) => `file:${resolve(cwd, folder)}`)
}

/** The store of a command in words, for messages. The password of an address is left out. */
export async function describeStore(url: string | undefined, io: CliIO): Promise<string> {
  const place = resolvePlace(url, io) ?? `file:${(await io.dataFolder()) ?? ''}`
  return `the store ${stripControls(scrubSecrets(place))}`
}

async function getDataFolder(io: CliIO): Promise<string> {
  const folder = await io.dataFolder()
  if (folder !== null) return folder
  throw new StoreError(
    'store_unavailable',
    'The user has no home folder for sessions. Name a store: --store file:DIR, or STATEWRIGHT_STORE.',
  )
}

function isMissing(folder: string | null): boolean {
  try {
    if (folder !== null) statSync(join(folder, 'sessions.db'))
    return false
  } catch (error) {
    return getErrorCode(error) === 'ENOENT'
  }
}
