import { checkInput } from '../../../core/config/check-input.js'
import { nonEmptyText, record } from '../../../core/config/kind.js'
import { systemClock, wait } from '../../../core/base/clock.js'
import { runInTurn } from '../../../core/base/maybe-promise.js'
import { createId } from '../../../core/base/platform.js'
import { StatewrightError, describeError } from '../../../core/base/errors.js'

/**
 * Stores one text for each server. The texts are secrets. Use a separate store for each of your users.
 *
 * @example
 * const texts = new Map<string, string>()
 * const store: McpTokenStore = {
 *   get: (key) => texts.get(key),
 *   set: (key, text) => void texts.set(key, text),
 *   delete: (key) => void texts.delete(key),
 * }
 */
export interface McpTokenStore {
  get(key: string): string | undefined | Promise<string | undefined>
  set(key: string, text: string): void | Promise<void>
  delete(key: string): void | Promise<void>
  /** Replaces a text atomically. Implement this if several processes share the store. Defaults to `get`, then `set`. */
  update?(key: string, edit: (text: string | undefined) => string): void | Promise<void>
}

export function createMemoryTokens(): McpTokenStore {
  const texts = new Map<string, string>()
  return {
    get: (key) => texts.get(key),
    set: (key, text) => void texts.set(key, text),
    delete: (key) => void texts.delete(key),
  }
}

/**
 * Stores sign-ins in a file that only its owner can read (mode 0600). The folder must exist. Several servers and
 * processes can share the file. Needs Node.
 *
 * @example
 * const store = fileTokenStore('./tokens.json')
 * @throws {ConfigError} `invalid_config`
 */
export function fileTokenStore(path: string): McpTokenStore {
  checkInput(record({ path: nonEmptyText() }), { path }, 'arguments of fileTokenStore')
  const change = (edit: (texts: Map<string, string>) => void): Promise<void> =>
    runInTurn(changes, toFileKey(path), async () => {
      const release = await lockFile(path)
      try {
        const texts = await readTexts(path)
        edit(texts)
        await writeTexts(path, texts)
      } finally {
        await release()
      }
    })
  return {
    get: async (key) => {
      await changes.get(toFileKey(path))?.catch(() => undefined)
      return (await readTexts(path)).get(key)
    },
    set: (key, text) => change((texts) => texts.set(key, text)),
    delete: (key) => change((texts) => texts.delete(key)),
    update: (key, edit) => change((texts) => texts.set(key, edit(texts.get(key)))),
  }
}

/** Serializes the changes to each file within this process. */
const changes = new Map<string, Promise<unknown>>()

const toFileKey = (path: string): string => process.getBuiltinModule('node:path').resolve(path)

/** A change takes milliseconds, so an older lock belongs to a dead process. */
const lockMs = 10_000
const lockLookMs = 10

/** Locks a file against other processes. Returns the function that releases the lock. */
async function lockFile(path: string): Promise<() => Promise<void>> {
  const { readFile, rename, rm, stat, writeFile } = process.getBuiltinModule('node:fs/promises')
  const [lock, owner] = [`${path}.lock`, createId()]
  const until = systemClock.now() + 3 * lockMs
  for (;;) {
    try {
      await writeFile(lock, owner, { mode: 0o600, flag: 'wx' })
      return async () => {
        if ((await readFile(lock, 'utf8').catch(() => '')) === owner) await rm(lock, { force: true })
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || systemClock.now() > until)
        throw unusableFile(path, `cannot be written. ${describeError(error)}`, error)
    }
    const age = await stat(lock).then(
      ({ mtimeMs }) => systemClock.now() - mtimeMs,
      () => 0,
    )
    if (age > lockMs) {
      // Only one process succeeds in moving the lock away.
      const left = `${lock}.${owner}`
      await rename(lock, left).then(
        () => rm(left, { force: true }),
        () => undefined,
      )
    } else await wait(systemClock, lockLookMs)
  }
}

async function readTexts(path: string): Promise<Map<string, string>> {
  const { readFile } = process.getBuiltinModule('node:fs/promises')
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
    throw unusableFile(path, `cannot be read. ${describeError(error)}`, error)
  }
  try {
    const texts: unknown = JSON.parse(text)
    const isMap = typeof texts === 'object' && texts !== null
    if (isMap && Object.values(texts).every((value) => typeof value === 'string'))
      return new Map(Object.entries(texts as Record<string, string>))
  } catch {
    // The parser's message would reveal a part of a secret.
  }
  throw unusableFile(path, 'is not a token file. Use another path, or remove it.')
}

/** Writes the texts atomically, so that the old file remains if the process dies in the meantime. */
async function writeTexts(path: string, texts: ReadonlyMap<string, string>): Promise<void> {
  const { writeFile, rename, rm } = process.getBuiltinModule('node:fs/promises')
  const draft = `${path}.${process.pid}.new`
  try {
    await rm(draft, { force: true })
    await writeFile(draft, JSON.stringify(Object.fromEntries(texts)), { mode: 0o600, flag: 'wx' })
    await rename(draft, path)
  } catch (error) {
    throw unusableFile(path, `cannot be written. ${describeError(error)}`, error)
  }
}

function unusableFile(path: string, why: string, cause?: unknown): StatewrightError {
  return new StatewrightError('mcp_tokens', `The fileTokenStore file '${path}' ${why}`, path, { cause })
}
