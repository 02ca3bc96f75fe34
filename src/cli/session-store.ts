import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ConfigError, StatewrightError } from '../core/base/errors.js'
import { readProperty } from '../core/base/json.js'
import { findNearestName } from '../core/base/text.js'
import { stripControls } from '../core/format/format-words.js'
import { memoryStore } from '../core/sessions/store/memory-store.js'
import { checkSessionId } from '../core/sessions/store/session-id.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { scrubSecrets } from '../core/shields/secrets.js'
import { findFolder, openStore } from '../stores/open-store.js'
import {
  badUsageError,
  CliError,
  type CliIO,
  missingSession,
  type ParsedOptions,
  writeNotice,
} from './command.js'
import type { storeOption } from './options.js'

export interface OpenedStore {
  store: SessionStore
  /** Whether sessions outlive the command. */
  isKept: boolean
}

/**
 * Without `--store` and STATEWRIGHT_STORE, opens the one in the user's folder, or keeps the session in memory.
 * @throws {StatewrightError} if the named store cannot be used
 */
export async function openStoreForRun(url: string | undefined, io: CliIO): Promise<OpenedStore> {
  const place = resolvePlace(url, io)
  if (place !== undefined)
    return { store: await openNamedStore(place, url), isKept: !/^memory:$/i.test(place) }
  try {
    return { store: await openStore(`file:${await getDataFolder(io)}`), isKept: true }
  } catch (error) {
    if (!(error instanceof StatewrightError)) throw error
    writeNotice(io, `this session is stored only in memory. ${error.message}`)
    return { store: memoryStore(), isKept: false }
  }
}

/** Opens the store for a command that shows sessions. A named folder must exist. @throws {CliError} `bad_usage` */
export async function openStoreToShow(url: string | undefined, io: CliIO): Promise<SessionStore> {
  const place = resolvePlace(url, io)
  const folder = place === undefined ? null : findFolder(place)
  if (folder !== null && isMissing(folder)) {
    const source = nameSource(url)
    throw badUsageError(
      `${source}: there is no store in ${stripControls(folder)}. Specify a folder with stored sessions, or create a store ` +
        'there: statewright run --store file:DIR',
      source,
    )
  }
  return (await openStoreForRun(url, io)).store
}

/** Opens the store for a command on stored sessions. A missing store counts as empty and is not created. */
export async function withSessionStore<Value>(
  url: string | undefined,
  io: CliIO,
  use: (store: SessionStore) => Promise<Value>,
): Promise<Value> {
  const place = resolvePlace(url, io) ?? `file:${await getDataFolder(io)}`
  return closeAfter(isMissing(findFolder(place)) ? memoryStore() : await openNamedStore(place, url), use)
}

export async function closeAfter<Value>(
  store: SessionStore,
  use: (store: SessionStore) => Promise<Value>,
): Promise<Value> {
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

export function withSession<Value>(
  { values, positionals: [id = ''] }: ParsedOptions<typeof storeOption>,
  io: CliIO,
  use: (store: SessionStore, session: ListedSession) => Promise<Value>,
): Promise<Value> {
  return withSessionStore(values.store, io, async (store) => use(store, await findSession(store, id)))
}

async function openNamedStore(place: string, url: string | undefined): Promise<SessionStore> {
  try {
    return await openStore(place)
  } catch (error) {
    if (!(error instanceof ConfigError && error.code === 'invalid_store')) throw error
    const source = nameSource(url)
    const hint = /^[\w./~-]+$/.test(place) ? ` For the folder '${place}': file:${place}` : ''
    throw badUsageError(`${source}: ${error.message}${hint}`, source, { cause: error })
  }
}

const nameSource = (url: string | undefined): string => (url === undefined ? 'STATEWRIGHT_STORE' : '--store')

function resolvePlace(url: string | undefined, { env, cwd }: CliIO): string | undefined {
  const place = url ?? (env.STATEWRIGHT_STORE?.trim() || undefined)
  return place?.replace(/^file:(?!\/\/)(.+)$/is, (_all, folder: string) => `file:${resolve(cwd, folder)}`)
}

/** A description of a command's store, without the password in its address. */
export async function describeStore(url: string | undefined, io: CliIO): Promise<string> {
  const place = resolvePlace(url, io) ?? `file:${(await io.dataFolder()) ?? ''}`
  return `the store ${stripControls(scrubSecrets(place))}`
}

async function getDataFolder(io: CliIO): Promise<string> {
  const folder = await io.dataFolder()
  if (folder !== null) return folder
  throw new StoreError(
    'store_unavailable',
    'There is no home folder to store sessions in. Specify a store: --store file:DIR, or STATEWRIGHT_STORE.',
  )
}

function isMissing(folder: string | null): boolean {
  try {
    if (folder !== null) statSync(join(folder, 'sessions.db'))
    return false
  } catch (error) {
    return readProperty(error, 'code') === 'ENOENT'
  }
}

/** @throws {CliError} `unknown_session`, with similar ids. @throws {UsageError} `invalid_session` */
export async function findSession(store: SessionStore, sessionId: string): Promise<ListedSession> {
  const id = checkSessionId(sessionId)
  const session = await store.get(id)
  if (session) return session
  const ids = (await store.list({ children: true })).map((entry) => entry.id)
  const withPrefix = ids.filter((one) => one.toLowerCase().startsWith(id.toLowerCase()))
  const near = withPrefix.length > 0 ? withPrefix.slice(0, 3) : [findNearestName(id, ids) ?? []].flat()
  const hint =
    near.length > 0
      ? `Did you mean ${near.map((one) => `'${one}'`).join(' or ')}?`
      : ids.length === 0
        ? 'The store is empty.'
        : missingSession
  throw new CliError('unknown_session', `There is no session '${id}' here. ${hint}`, id)
}

export function checkRecordExists(at: number | undefined, { id, head }: ListedSession): void {
  if (at !== undefined && at > head)
    throw badUsageError(`--at: session '${id}' has ${head} records; there is no record ${at}.`, '--at')
}
