import { isObject } from '../core/base/values.js'
import type { SkillInfo } from '../core/tools/tool-outcomes.js'
import { ConfigError } from '../core/base/errors.js'

const namePattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
export const isSkillName = (name: string): boolean => name.length <= 64 && namePattern.test(name)

const toolPattern = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * Checks the front matter of a skill, or an entry in a list of skills.
 * @throws {ConfigError} `invalid_skill`
 */
export function checkSkill(where: string, skill: Readonly<Record<string, unknown>>): Omit<SkillInfo, 'hash'> {
  const { name, description, allowedTools, license, metadata } = skill
  if (typeof name !== 'string' || !isSkillName(name))
    throw invalidSkillError(
      where,
      "its name must consist of 1 to 64 lower-case letters, digits and single hyphens, such as 'code-review'.",
    )
  if (typeof description !== 'string' || description.trim() === '')
    throw invalidSkillError(
      where,
      'its description is missing. Describe for the model what it is for and when to load it.',
    )
  if (description.length > maxDescriptionChars)
    throw invalidSkillError(
      where,
      `its description has ${description.length} characters, but at most ${maxDescriptionChars} are allowed.`,
    )
  const tools = toToolNames(where, allowedTools)
  return {
    name,
    description: description.trim(),
    ...(tools && { allowedTools: tools }),
    ...(typeof license === 'string' && { license }),
    ...(isObject(metadata) && { metadata: toTexts(metadata) }),
  }
}

/** `allowed-tools` is a list, or a string with spaces or commas. */
function toToolNames(where: string, value: unknown): string[] | undefined {
  if (value === undefined) return undefined
  // An empty value could mean every tool or none.
  if (value === null)
    throw invalidSkillError(
      where,
      'allowed-tools is empty. List the tools, write [] for none, or omit it for all.',
    )
  const names: unknown[] =
    typeof value === 'string' ? value.split(/[\s,]+/).filter(Boolean) : Array.isArray(value) ? value : [value]
  return names.map((name) => {
    if (typeof name === 'string' && toolPattern.test(name)) return name
    const shown = typeof name === 'string' ? `'${name.slice(0, 80)}'` : `a value of type ${typeof name}`
    throw invalidSkillError(
      where,
      `allowed-tools has ${shown}. List names of tools, without patterns or arguments.`,
    )
  })
}

function toTexts(metadata: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(metadata).flatMap(([key, value]) =>
      ['string', 'number', 'boolean'].includes(typeof value) ? [[key, String(value)]] : [],
    ),
  )
}

/**
 * Refuses duplicate names, and more skills than an index can hold. Returns them sorted by name.
 * @throws {ConfigError} `duplicate_skill`, `invalid_skill`
 */
export function sortSkills<Skill extends { name: string; where: string }>(skills: readonly Skill[]): Skill[] {
  if (skills.length > maxSkills)
    throw new ConfigError(
      'invalid_skill',
      `There are ${skills.length} skills, but at most ${maxSkills} are allowed. Select some with allow.`,
      'skills',
    )
  const byName = new Map<string, Skill>()
  for (const skill of skills) {
    const other = byName.get(skill.name)
    if (other)
      throw new ConfigError(
        'duplicate_skill',
        `Two skills are named '${skill.name}': ${other.where} and ${skill.where}. Rename or remove one.`,
        skill.name,
      )
    byName.set(skill.name, skill)
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

export function invalidSkillError(where: string, problem: string, options?: ErrorOptions): ConfigError {
  return new ConfigError('invalid_skill', `Skill ${where}: ${problem}`, where, options)
}

/** The maximum length of the index in the instructions, in characters. */
export const maxIndexChars = 8_000
/** The maximum length of the instructions of a skill, in characters. */
export const maxBodyChars = 100_000
/** The maximum size of a SKILL.md, in bytes. */
export const maxSkillBytes = 500_000
/** The maximum length of the front matter of a SKILL.md, in characters. */
export const maxFrontMatterChars = 20_000
/** The maximum length of a description in the Agent Skills format, in characters. */
const maxDescriptionChars = 1_024
/** The maximum size of a file in the folder of a skill, in bytes. */
export const maxFileBytes = 1_000_000
const maxSkills = 500
