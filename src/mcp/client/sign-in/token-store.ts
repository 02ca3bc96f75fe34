import { checkInput } from '../../../core/config/check-input.js'
import { nonEmptyText, record } from '../../../core/config/value-kinds.js'
import { StatewrightError } from '../../../core/base/errors.js'
import { describeError } from '../../../core/base/describe-error.js'

/**
 * Where sign-ins are kept: a text for each server. The texts are secrets. Give each of your users a store of their own.
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
}

/** Sign-ins that end with the process. */
export function createMemoryTokens(): McpTokenStore {
  const texts = new Map<string, string>()
  return {
    get: (key) => texts.get(key),
    set: (key, text) => void texts.set(key, text),
    delete: (key) => void texts.delete(key),
  }
}

const pathKind = record({ path: nonEmptyText() })

/**
 * Keeps sign-ins in a file that its owner alone can read (mode 0600). The folder has to exist. Needs Node.
 *
 * @example
 * const store = fileTokenStore('./tokens.json')
 * @throws {ConfigError} `invalid_config`
 */
export function fileTokenStore(path: string): McpTokenStore {
  checkInput(pathKind, { path }, 'arguments of fileTokenStore')
  // What waits for its turn: two changes must not lose each other.
  let last: Promise<unknown> = Promise.resolve()
  const change = (edit: (texts: Record<string, string>) => void): Promise<void> => {
    const edited = async (): Promise<void> => {
      const texts = await readTexts(path)
      edit(texts)
      await writeTexts(path, texts)
    }
    const work = last.then(edited)
    last = work.catch(() => undefined)
    return work
  }
  return {
    get: async (key) => {
      await last
      const texts = await readTexts(path)
      return Object.hasOwn(texts, key) ? texts[key] : undefined
    },
    set: (key, text) =>
      change((texts) => {
        texts[key] = text
      }),
    delete: (key) =>
      change((texts) => {
        delete texts[key]
      }),
  }
}

async function readTexts(path: string): Promise<Record<string, string>> {
  const { readFile } = process.getBuiltinModule('node:fs/promises')
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw unusableFile(path, `cannot be read. ${describeError(error)}`, error)
  }
  try {
    const texts: unknown = JSON.parse(text)
    const isMap = typeof texts === 'object' && texts !== null
    if (isMap && Object.values(texts).every((value) => typeof value === 'string'))
      return texts as Record<string, string>
  } catch {
    // The parser's own words would show a part of a secret.
  }
  throw unusableFile(path, 'is no file of tokens. Give another path, or remove it.')
}

/** Whole or not at all: a process that dies in between leaves the old file. */
async function writeTexts(path: string, texts: Record<string, string>): Promise<void> {
  const { writeFile, rename, rm } = process.getBuiltinModule('node:fs/promises')
  const draft = `${path}.${process.pid}.new`
  try {
    await rm(draft, { force: true })
    await writeFile(draft, JSON.stringify(texts), { mode: 0o600, flag: 'wx' })
    await rename(draft, path)
  } catch (error) {
    throw unusableFile(path, `cannot be written. ${describeError(error)}`, error)
  }
}

function unusableFile(path: string, why: string, cause?: unknown): StatewrightError {
  return new StatewrightError('mcp_tokens', `The file '${path}' of fileTokenStore ${why}`, path, { cause })
}
