import { truncate } from '../../guards/lib/words.js'
import { sha256 } from '../../guards/lib/sha256.js'
import { ConfigError } from '../core/base/errors.js'
import { sortByNearness } from '../core/base/text.js'
import { functionRule, isObject } from '../core/base/values.js'
import { checkOptions, type OptionRules } from '../core/config/check-options.js'
import { defineTool } from '../core/tools/define-tool.js'
import { ToolError } from '../core/tools/tool-error.js'
import { type AgentSkills, type SkillInfo, SkillOutcome } from '../core/tools/tool-outcomes.js'
import type { Tool } from '../core/tools/tool.js'

const namePattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
const isSkillName = (name: string): boolean => name.length <= 64 && namePattern.test(name)

const toolPattern = /^[a-zA-Z0-9_-]{1,64}$/

/** Checks the front matter of a skill, or an entry in a list of skills. @throws {ConfigError} `invalid_skill` */
export function checkSkill(where: string, skill: Readonly<Record<string, unknown>>): Omit<SkillInfo, 'hash'> {
  const { name, description, allowedTools, license, metadata } = skill
  const fail = (problem: string): ConfigError => invalidSkillError(where, problem)
  if (typeof name !== 'string' || !isSkillName(name))
    throw fail(
      "its name must consist of 1 to 64 lower-case letters, digits and single hyphens, such as 'code-review'.",
    )
  if (typeof description !== 'string' || description.trim() === '')
    throw fail('its description is missing. Describe for the model what it is for and when to load it.')
  if (description.length > maxDescriptionChars)
    throw fail(
      `its description has ${description.length} characters, but at most ${maxDescriptionChars} are allowed.`,
    )
  const tools = toToolNames(allowedTools, fail)
  return {
    name,
    description: description.trim(),
    ...(tools && { allowedTools: tools }),
    ...(typeof license === 'string' && { license }),
    ...(isObject(metadata) && { metadata: toTexts(metadata) }),
  }
}

/** `allowed-tools` is a list, or a string with spaces or commas. */
function toToolNames(value: unknown, fail: (problem: string) => ConfigError): string[] | undefined {
  if (value === undefined) return undefined
  // An empty value could mean every tool or none.
  if (value === null)
    throw fail('allowed-tools is empty. List the tools, write [] for none, or omit it for all.')
  const names: unknown[] =
    typeof value === 'string' ? value.split(/[\s,]+/).filter(Boolean) : Array.isArray(value) ? value : [value]
  return names.map((name) => {
    if (typeof name === 'string' && toolPattern.test(name)) return name
    const shown = typeof name === 'string' ? `'${name.slice(0, 80)}'` : `a value of type ${typeof name}`
    throw fail(`allowed-tools has ${shown}. List names of tools, without patterns or arguments.`)
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
const maxBodyChars = 100_000
/** The maximum size of a SKILL.md, in bytes. */
export const maxSkillBytes = 500_000
/** The maximum length of the front matter of a SKILL.md, in characters. */
export const maxFrontMatterChars = 20_000
/** The maximum length of a description in the Agent Skills format, in characters. */
const maxDescriptionChars = 1_024
/** The maximum size of a file in the folder of a skill, in bytes. */
export const maxFileBytes = 1_000_000
const maxSkills = 500

export interface LoadedSkill {
  info: SkillInfo
  body: string
}

interface SkillSource {
  list: readonly SkillInfo[]
  load: (name: string) => LoadedSkill | Promise<LoadedSkill>
  /** Returns a file of a skill. Absent when skills have no files. */
  readFile?: ((name: string, path: string) => string | Promise<string>) | undefined
}

const nameProperty = { type: 'string', description: "The skill's name." }
const nameInput = {
  type: 'object',
  properties: { name: nameProperty },
  required: ['name'],
  additionalProperties: false,
} as const

export function createSkills({ list, load, readFile }: SkillSource): AgentSkills {
  const byName = new Map(list.map((info) => [info.name, info]))
  const expectName = (name: string): void => {
    if (byName.has(name)) return
    const near = sortByNearness(name, [...byName.keys()]).slice(0, 20)
    const rest =
      near.length === 0
        ? 'There are none.'
        : `The skills are: ${near.join(', ')}${byName.size > near.length ? ', …' : ''}.`
    throw new ToolError('failed', `There is no skill '${name.slice(0, 80)}'. ${rest}`)
  }

  const loadTool = defineTool({
    name: 'load_skill',
    description: 'Loads a skill. Returns its instructions, which apply from then on.',
    input: nameInput,
    readOnly: true,
    idempotent: true,
    execute: async (input) => {
      const { name } = input as { name: string }
      expectName(name)
      const { info, body } = await load(name)
      if (body.length > maxBodyChars)
        throw new ToolError(
          'failed',
          `The skill '${name}' has ${body.length} characters, but at most ${maxBodyChars} are allowed.`,
        )
      const { hash, allowedTools } = info
      return new SkillOutcome(formatLoaded(body, allowedTools), {
        action: 'load',
        name,
        hash,
        ...(allowedTools && { allowedTools: [...allowedTools] }),
      })
    },
  })
  const unloadTool = defineTool({
    name: 'unload_skill',
    description: 'Unloads a skill. Its instructions and tool restrictions no longer apply.',
    input: nameInput,
    readOnly: true,
    idempotent: true,
    execute: (input) => {
      const { name } = input as { name: string }
      // A session may have loaded a skill that the agent no longer has.
      if (!isSkillName(name)) expectName(name)
      return new SkillOutcome(`The skill '${name}' is no longer loaded.`, { action: 'unload', name })
    },
  })
  const readTool = defineTool({
    name: 'read_skill_file',
    description: "Reads a text file from a skill's folder.",
    input: {
      type: 'object',
      properties: {
        skill: nameProperty,
        path: {
          type: 'string',
          description: 'The path within the folder, with slashes, such as references/forms.md',
        },
        offset: {
          type: 'integer',
          minimum: 0,
          description: 'The number of characters to skip at the start.',
        },
      },
      required: ['skill', 'path'],
      additionalProperties: false,
    },
    readOnly: true,
    idempotent: true,
    execute: async (input) => {
      const { skill, path, offset = 0 } = input as { skill: string; path: string; offset?: number }
      expectName(skill)
      if (!readFile) throw new ToolError('failed', "This agent's skills have no files.")
      return (await readFile(skill, path)).slice(offset)
    },
  })
  const tools = [loadTool, readTool, unloadTool].map((tool) =>
    Object.freeze({ ...(tool as Tool), skill: true as const }),
  )
  return Object.freeze({ list, tools, instructions: formatIndex(list) })
}

function formatLoaded(body: string, allowedTools: readonly string[] | undefined): string {
  if (allowedTools === undefined) return body
  const allowed = allowedTools.length === 0 ? 'no tool' : `only ${allowedTools.join(', ')}`
  return `${body}\n\n[While this skill is loaded, ${allowed} may be called, in addition to the skill tools. unload_skill removes this restriction.]`
}

/** Skills from anywhere, such as a bundle, a database or a URL. */
export interface ListedSkillsOptions {
  /** The skills for the index. A `hash` must change with the instructions. */
  list: readonly (Omit<SkillInfo, 'hash'> & { readonly hash?: string })[]
  /** Returns the instructions of a skill when the model loads it. */
  load: (name: string) => string | Promise<string>
  /** Returns a file of a skill. The model chooses `path`, so check it. By default, skills have no files. */
  readFile?: (name: string, path: string) => string | Promise<string>
}

const listedSkillsRules: OptionRules<ListedSkillsOptions> = {
  list: {
    isRequired: true,
    is: Array.isArray,
    phrase: "a list, such as [{ name: 'review', description: '…' }]",
  },
  load: { isRequired: true, ...functionRule("a function that returns a skill's instructions") },
  readFile: functionRule('a function that returns a file'),
}

export function createListedSkills(options: ListedSkillsOptions): AgentSkills {
  const { list, load, readFile } = checkOptions('skills(options)', options, listedSkillsRules)
  const infos = sortSkills(
    list.map((entry, i) => {
      const where = `list[${i}]`
      if (typeof entry !== 'object' || entry === null)
        throw invalidSkillError(where, 'it must be an object with name and description.')
      const { hash } = entry
      const info = checkSkill(where, { ...entry })
      return {
        ...info,
        hash: typeof hash === 'string' ? hash : sha256(JSON.stringify(info)).slice(0, 16),
        where,
      }
    }),
  ).map(({ where: _where, ...info }) => info)
  const byName = new Map(infos.map((info) => [info.name, info]))
  return createSkills({
    list: infos,
    load: async (name) => {
      const body = await load(name)
      if (typeof body !== 'string') throw new TypeError(`load('${name}') did not return a string.`)
      return { info: byName.get(name) as SkillInfo, body }
    },
    readFile,
  })
}

const opening =
  'Skills are instructions for certain tasks. When a task fits one of these, call load_skill with its name before you start, and follow its instructions. read_skill_file reads the files it mentions. Call unload_skill when the task is done.'

function formatIndex(skills: readonly Pick<SkillInfo, 'name' | 'description'>[]): string {
  if (skills.length === 0) return ''
  const room = maxIndexChars - opening.length - 60
  for (const chars of [1_024, 400, 200, 100, 50]) {
    const lines = skills.map(({ name, description }) => `- ${name}: ${truncate(toLine(description), chars)}`)
    const text = lines.join('\n')
    if (text.length <= room) return `${opening}\n${text}`
  }
  const names: string[] = []
  let length = 0
  for (const { name } of skills) {
    length += name.length + 3
    if (length > room) break
    names.push(`- ${name}`)
  }
  const left = skills.length - names.length
  return [opening, ...names, ...(left > 0 ? [`and ${left} more. load_skill lists them`] : [])].join('\n')
}

const toLine = (text: string): string => text.replaceAll(/\s+/g, ' ')
