import { existsSync, lstatSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { ConfigError } from '../../core/base/errors.js'
import { type ArgumentRule, expectArgument } from '../../core/base/values.js'
import { checkOptions, countRule, textRule } from '../../core/config/check-options.js'
import { isInside, readOrRefuse } from './skill-folders.js'

export interface InstructionsFromOptions {
  /** The first folder. Defaults to the working directory. */
  cwd?: string
  /** The last folder to search. Defaults to the folder with `.git`, or otherwise `cwd`. */
  root?: string
  /** The maximum length of all files together, in characters. Defaults to 40,000. */
  maxChars?: number
}

const namesRule: ArgumentRule = {
  is: (value) =>
    Array.isArray(value) &&
    value.every((name) => typeof name === 'string' && /^[^/\\\0]+$/.test(name) && name !== '..'),
  phrase: "a list of file names, such as ['AGENTS.md']",
}

const maxBytes = 1_000_000

/**
 * Reads instructions from project files, for `createAgent({ instructions })`. Files in `cwd` come first, then files in
 * its parent folders, up to the root of the repository. Beyond `maxChars`, the farthest files are dropped first.
 *
 * @example
 * const instructions = instructionsFrom(['AGENTS.md'], { cwd: process.cwd() })
 * createAgent({ model, instructions })
 * @throws {ConfigError} `invalid_instructions` for a file that is not text, is larger than 1 MB, or is a link that
 * leaves the root
 * @throws {UsageError} `invalid_argument`, `invalid_option`
 */
export function instructionsFrom(names: readonly string[], options: InstructionsFromOptions = {}): string {
  expectArgument('instructionsFrom(names)', names, namesRule)
  checkOptions<InstructionsFromOptions>('instructionsFrom(names, options)', options, {
    cwd: textRule,
    root: textRule,
    maxChars: countRule,
  })
  const { cwd = process.cwd(), maxChars = 40_000 } = options
  const start = resolve(cwd)
  const root = resolve(options.root ?? findRepository(start) ?? start)
  expectArgument('instructionsFrom(names, { root })', root, {
    is: () => isInside(root, start),
    phrase: `${start}, or a folder above it`,
  })
  const texts: string[] = []
  let left = maxChars
  for (const folder of listFolders(start, root)) {
    for (const name of names) {
      const path = join(folder, name)
      if (lstatSync(path, { throwIfNoEntry: false }) === undefined) continue
      const shown = relative(start, path).split(sep).join('/')
      const found = readOrRefuse(root, relative(root, path).split(sep).join('/'), maxBytes, (cause) => {
        const problem = `${path} cannot be read: ${cause.message}`
        return new ConfigError('invalid_instructions', problem, path, { cause })
      })
      const text = `Instructions in ${shown}:\n\n${found.trim()}`
      const fitting =
        text.length <= left ? text : left > 200 ? `${text.slice(0, left - 30)}\n[The rest is omitted.]` : ''
      if (fitting === '') return texts.join('\n\n')
      texts.push(fitting)
      left -= fitting.length + 2
    }
  }
  return texts.join('\n\n')
}

function findRepository(start: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder
    if (folder === dirname(folder)) return undefined
  }
}

function listFolders(start: string, root: string): string[] {
  const folders = [start]
  for (let folder = start; folder !== root; ) {
    folder = dirname(folder)
    folders.push(folder)
  }
  return folders
}
