import { sortByNearness } from '../core/base/text.js'
import { defineTool } from '../core/tools/define-tool.js'
import { type AgentSkills, type SkillInfo, SkillOutcome } from '../core/tools/tool-outcomes.js'
import type { Tool } from '../core/tools/tool.js'
import { ToolError } from '../core/tools/tool-error.js'
import { isSkillName } from './check-skill.js'
import { formatIndex } from './format-index.js'
import { maxBodyChars } from './skill-limits.js'

/** A skill as it is when it is loaded. */
export interface LoadedSkill {
  info: SkillInfo
  body: string
}

/** Where skills come from. */
export interface SkillSource {
  list: readonly SkillInfo[]
  load: (name: string) => LoadedSkill | Promise<LoadedSkill>
  /** Absent: skills have no files. */
  readFile?: ((name: string, path: string) => string | Promise<string>) | undefined
}

const nameProperty = { type: 'string', description: 'The name of the skill.' }
const nameInput = {
  type: 'object',
  properties: { name: nameProperty },
  required: ['name'],
  additionalProperties: false,
} as const

/** The skills of an agent, with their index and their tools. */
export function createSkills({ list, load, readFile }: SkillSource): AgentSkills {
  const byName = new Map(list.map((info) => [info.name, info]))
  const expectName = (name: string): void => {
    if (byName.has(name)) return
    const near = sortByNearness(name, [...byName.keys()]).slice(0, 20)
    const rest =
      near.length === 0
        ? 'There are none.'
        : `There are: ${near.join(', ')}${byName.size > near.length ? ', …' : ''}.`
    throw new ToolError('failed', `There is no skill '${name.slice(0, 80)}'. ${rest}`)
  }

  const loadTool = defineTool({
    name: 'load_skill',
    description: 'Loads a skill: returns its instructions, which hold from then on.',
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
          `The skill '${name}' has ${body.length} characters, of at most ${maxBodyChars}.`,
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
    description: 'Takes a loaded skill back: its instructions, and what it says of tools, no longer hold.',
    input: nameInput,
    readOnly: true,
    idempotent: true,
    execute: (input) => {
      const { name } = input as { name: string }
      // A session may have loaded a skill that the agent no longer has.
      if (!isSkillName(name)) expectName(name)
      return new SkillOutcome(`The skill '${name}' is not loaded any more.`, { action: 'unload', name })
    },
  })
  const readTool = defineTool({
    name: 'read_skill_file',
    description: 'Reads a text file in the folder of a skill.',
    input: {
      type: 'object',
      properties: {
        skill: nameProperty,
        path: { type: 'string', description: 'Its path in the folder, with slashes: references/forms.md' },
        offset: {
          type: 'integer',
          minimum: 0,
          description: 'How many characters to leave out at the beginning.',
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
      if (!readFile) throw new ToolError('failed', 'The skills of this agent have no files.')
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
  return `${body}\n\n[While this skill is loaded, ${allowed} may be called, besides the tools of skills. unload_skill ends that.]`
}
