import { type ArgumentRule, expectArgument, optionsRule } from '../../core/base/values.js'
import { checkOptions } from '../../core/config/check-options.js'
import type { AgentSkills, SkillInfo } from '../../core/tools/tool-outcomes.js'
import {
  checkSkill,
  createListedSkills,
  createSkills,
  invalidSkillError,
  type ListedSkillsOptions,
  type LoadedSkill,
  maxFileBytes,
  maxFrontMatterChars,
  maxSkillBytes,
  sortSkills,
} from '../create-skills.js'
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, resolve, sep } from 'node:path'
import { sha256 } from '../../../guards/lib/sha256.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { createRequire } from 'node:module'
import { missingPackageError } from '../../core/base/platform.js'

const dirsRule: ArgumentRule & { isRequired: true } = {
  isRequired: true,
  is: (value) => Array.isArray(value) && value.every((dir) => typeof dir === 'string' && dir !== ''),
  phrase: "a list of folders, such as ['./skills']",
}
const allowRule: ArgumentRule = {
  is: (value) =>
    typeof value === 'function' || (Array.isArray(value) && value.every((name) => typeof name === 'string')),
  phrase: 'a list of names, or a function',
}

/**
 * The skills of an agent, for `createAgent({ skills })`. They come from folders in the Agent Skills format (Node, with
 * the package `yaml`), or from a list with `load` (everywhere).
 *
 * @example
 * const fromFolders = () => skills({ dirs: ['./skills'], allow: ['review'] })
 * const fromList = skills({
 *   list: [{ name: 'review', description: 'How to review a change.', allowedTools: ['read'] }],
 *   load: () => 'Read the whole change before you say anything.',
 * })
 * @throws {ConfigError} `invalid_skill` for a file that is not a skill, is too large or lies outside its folder, `duplicate_skill`
 * @throws {UsageError} `invalid_argument`, `invalid_option`
 * @throws {StatewrightError} `missing_package`
 */
export function skills(options: SkillFoldersOptions | ListedSkillsOptions): AgentSkills {
  expectArgument('skills(options)', options ?? null, optionsRule)
  if ('list' in options || 'load' in options) return createListedSkills(options as ListedSkillsOptions)
  return createFolderSkills(
    checkOptions<SkillFoldersOptions>('skills(options)', options, { dirs: dirsRule, allow: allowRule }),
  )
}

/** Skills in folders, in the Agent Skills format. */
export interface SkillFoldersOptions {
  /** Folders that contain one subfolder with a SKILL.md for each skill, or the folders of single skills. */
  dirs: readonly string[]
  /** The skills of the agent, as names or a function. Defaults to all skills. */
  allow?: readonly string[] | ((skill: SkillInfo) => boolean)
}

const fileName = 'SKILL.md'
const narrowingKey = 'allowed-tools'
const toLetters = (key: string): string => key.toLowerCase().replaceAll(/[^a-z]/g, '')

/** Reads the front matter of all skills. Instructions are read when they are loaded. */
function createFolderSkills({ dirs, allow }: SkillFoldersOptions): AgentSkills {
  const isAllowed =
    typeof allow === 'function' ? allow : ({ name }: SkillInfo) => allow === undefined || allow.includes(name)
  const found = dirs
    .flatMap((dir) => listSkillFolders(resolve(dir)))
    .map((folder) => ({ ...readSkill(folder).info, where: folder }))
    .filter(({ where: _where, ...info }) => isAllowed(info))
  const skills = sortSkills(found)
  const folders = new Map(skills.map(({ name, where }) => [name, where]))
  const folderOf = (name: string): string => folders.get(name) ?? ''
  return createSkills({
    list: skills.map(({ where: _where, ...info }) => info),
    load: (name) => {
      const loaded = readSkill(folderOf(name))
      if (loaded.info.name === name) return loaded
      throw new ToolError(
        'failed',
        `The skill '${name}' is now named '${loaded.info.name}'. Create the agent again.`,
      )
    },
    readFile: (name, path) =>
      readOrRefuse(folderOf(name), path, maxFileBytes, ({ message }) => {
        const file = `The file '${path.slice(0, 200)}' of the skill '${name}'`
        return new ToolError('failed', `${file} cannot be read: ${message}`)
      }),
  })
}

function listSkillFolders(dir: string): string[] {
  if (existsSync(join(dir, fileName))) return [dir]
  let base: string
  let names: string[]
  try {
    base = realpathSync(dir)
    names = readdirSync(base)
  } catch (error) {
    const isMissing = (error as { code?: unknown }).code === 'ENOENT'
    throw invalidSkillError(dir, isMissing ? 'there is no such folder.' : 'it is not a readable folder.', {
      cause: error,
    })
  }
  return names
    .filter((name) => !name.startsWith('.') && existsSync(join(base, name, fileName)))
    .sort()
    .map((name) => {
      const folder = join(base, name)
      if (!isInside(base, realpathSync(folder)))
        throw invalidSkillError(folder, `it is a link that points outside ${base}. Add that folder to dirs.`)
      return folder
    })
}

function readSkill(folder: string): LoadedSkill {
  const where = join(folder, fileName)
  const text = readOrRefuse(folder, fileName, maxSkillBytes, (error) =>
    invalidSkillError(where, error.message, { cause: error }),
  )
  const { fields, body } = splitFrontMatter(where, text)
  // A typo in a skill that narrows the tools must not widen them.
  const slip = Object.keys(fields).find((key) => key !== narrowingKey && toLetters(key) === 'allowedtools')
  if (slip !== undefined)
    throw invalidSkillError(where, `its front matter has '${slip.slice(0, 80)}' instead of ${narrowingKey}.`)
  const { 'allowed-tools': allowedTools, ...others } = fields
  const info = checkSkill(where, { ...others, allowedTools })
  return { info: { ...info, hash: sha256(text).slice(0, 16) }, body }
}

/** Reads a text file below a folder. A refusal is converted to the caller's error. */
export function readOrRefuse(
  folder: string,
  path: string,
  maxBytes: number,
  refuse: (refusal: Error) => Error,
): string {
  try {
    return readContainedText(folder, path, maxBytes)
  } catch (error) {
    throw error instanceof FileRefusal ? refuse(error) : error
  }
}

/** The message completes a sentence that starts with the path. */
class FileRefusal extends Error {}

/**
 * Reads a text file below a folder. Refuses paths that leave the folder (even through a link), anything but regular
 * files, more than `maxBytes` bytes, and invalid UTF-8.
 * @throws {FileRefusal}
 */
function readContainedText(folder: string, path: string, maxBytes: number): string {
  const real = findContainedFile(folder, path)
  const { size } = statSync(real)
  if (size > maxBytes) throw new FileRefusal(`it has ${size} bytes, but at most ${maxBytes} are allowed.`)
  const bytes = readBytes(real)
  if (bytes.length > maxBytes)
    throw new FileRefusal(`it has ${bytes.length} bytes, but at most ${maxBytes} are allowed.`)
  if (bytes.includes(0)) throw new FileRefusal('it is not a text file.')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new FileRefusal('it is not UTF-8 text.')
  }
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new FileRefusal(`it cannot be opened (${String((error as { code?: unknown }).code)}).`)
  }
}

function findContainedFile(folder: string, path: string): string {
  const leaves =
    path === '' || path.includes('\0') || path.includes('\\') || isAbsolute(path) || /^[a-z]:/i.test(path)
  if (leaves || path.split('/').includes('..'))
    throw new FileRefusal(
      'its path must be relative to the folder, without "..", a leading slash or a backslash.',
    )
  let base: string
  let real: string
  try {
    base = realpathSync(folder)
    real = realpathSync(join(base, path))
  } catch {
    throw new FileRefusal('there is no such file.')
  }
  if (!isInside(base, real)) throw new FileRefusal('a link points outside the folder.')
  // A pipe or a device would block the process.
  if (!statSync(real).isFile()) throw new FileRefusal('it is not a regular file.')
  return real
}

export function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

interface Yaml {
  parse(text: string, options: { maxAliasCount: number; logLevel: 'error' }): unknown
}

const loadPackage = createRequire(import.meta.url)
let yaml: Yaml | undefined

/**
 * Splits a SKILL.md into its front matter and body.
 * @throws {ConfigError} `invalid_skill`
 * @throws {StatewrightError} `missing_package`
 */
function splitFrontMatter(where: string, text: string) {
  const fail = (problem: string) => invalidSkillError(where, problem)
  const whole = text.startsWith('\uFEFF') ? text.slice(1) : text
  const opening = /^---[ \t]*\r?\n/.exec(whole)
  if (!opening)
    throw fail("it must start with front matter: a line '---', name and description, and another line '---'.")
  const from = opening[0].length
  const closing = /^---[ \t]*(?:\r?\n|$)/m
  const head = whole.slice(from, from + maxFrontMatterChars + 10)
  const end = closing.exec(head)
  if (!end)
    throw fail(
      `its front matter does not end with a line '---', or has more than ${maxFrontMatterChars} characters.`,
    )
  const fields = parseYaml(where, head.slice(0, end.index))
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw fail('its front matter must contain keys and values, such as name: review')
  return { fields: fields as Record<string, unknown>, body: whole.slice(from + end.index + end[0].length) }
}

function parseYaml(where: string, text: string): unknown {
  yaml ??= loadYaml()
  try {
    // Aliases could make a small text expand to a huge value.
    return yaml.parse(text, { maxAliasCount: 0, logLevel: 'error' })
  } catch (error) {
    const [why = ''] = (error as Error).message.split('\n')
    throw invalidSkillError(where, `its front matter is not valid YAML: ${why}`, { cause: error })
  }
}

/** Loaded synchronously, because agents are created synchronously. */
function loadYaml(): Yaml {
  try {
    return loadPackage('yaml') as Yaml
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw error
    throw missingPackageError('Reading skills from folders', 'yaml', error)
  }
}
