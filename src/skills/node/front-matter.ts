import { createRequire } from 'node:module'
import { StatewrightError } from '../../core/base/errors.js'
import { invalidSkillError } from '../skill-error.js'
import { maxFrontMatterChars } from '../skill-limits.js'

interface Yaml {
  parse(text: string, options: { maxAliasCount: number; logLevel: 'error' }): unknown
}

const loadPackage = createRequire(import.meta.url)
let yaml: Yaml | undefined

/**
 * The front matter of a SKILL.md, and what follows it, as it stands there.
 *
 * @throws {ConfigError} `invalid_skill`
 * @throws {StatewrightError} `missing_package`
 */
export function splitFrontMatter(
  where: string,
  text: string,
): { fields: Readonly<Record<string, unknown>>; body: string } {
  const whole = text.startsWith('\uFEFF') ? text.slice(1) : text
  const opening = /^---[ \t]*\r?\n/.exec(whole)
  if (!opening)
    throw invalidSkillError(
      where,
      "it must begin with front matter: a line '---', name and description, and a line '---'.",
    )
  const from = opening[0].length
  const closing = /^---[ \t]*(?:\r?\n|$)/m
  const head = whole.slice(from, from + maxFrontMatterChars + 10)
  const end = closing.exec(head)
  if (!end)
    throw invalidSkillError(
      where,
      `its front matter has no line '---' at its end, or more than ${maxFrontMatterChars} characters.`,
    )
  const fields = parseYaml(where, head.slice(0, end.index))
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw invalidSkillError(where, 'its front matter must be keys with values, such as name: review')
  return { fields: fields as Record<string, unknown>, body: whole.slice(from + end.index + end[0].length) }
}

function parseYaml(where: string, text: string): unknown {
  yaml ??= loadYaml()
  try {
    // Aliases could make a small text large.
    return yaml.parse(text, { maxAliasCount: 0, logLevel: 'error' })
  } catch (error) {
    const [why = ''] = (error as Error).message.split('\n')
    throw invalidSkillError(where, `its front matter is no YAML: ${why}`, { cause: error })
  }
}

/** Loaded at once, because agents are created at once. */
function loadYaml(): Yaml {
  try {
    return loadPackage('yaml') as Yaml
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw error
    const text =
      'Reading skills from folders needs the package yaml, which is not installed. Run: npm install yaml'
    throw new StatewrightError('missing_package', text, 'yaml', { cause: error })
  }
}
