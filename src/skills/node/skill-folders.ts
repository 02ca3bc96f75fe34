import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { AgentSkills, SkillInfo } from '../../core/tools/tool-outcomes.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { checkSkill, sortSkills } from '../check-skill.js'
import { createSkills, type LoadedSkill } from '../create-skills.js'
import { invalidSkillError } from '../skill-error.js'
import { maxFileBytes, maxSkillBytes } from '../skill-limits.js'
import { FileRefusal, isInside, readContainedText } from './contained-file.js'
import { splitFrontMatter } from './front-matter.js'

/** Skills in folders, in the Agent Skills format. */
export interface SkillFoldersOptions {
  /** Folders of skills: each has a folder with a SKILL.md for every skill, or is such a folder itself. */
  dirs: readonly string[]
  /** Which of them the agent has: their names, or a function that says it of each. Default: all. */
  allow?: readonly string[] | ((skill: SkillInfo) => boolean)
}

const fileName = 'SKILL.md'
const narrowingKey = 'allowed-tools'
const toLetters = (key: string): string => key.toLowerCase().replaceAll(/[^a-z]/g, '')

/** Reads the front matter of all skills. Their instructions are read again when they are loaded. */
export function createFolderSkills({ dirs, allow }: SkillFoldersOptions): AgentSkills {
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
        `The skill '${name}' is now named '${loaded.info.name}'. The agent has to be created anew.`,
      )
    },
    readFile: (name, path) => {
      try {
        return readContainedText(folderOf(name), path, maxFileBytes)
      } catch (error) {
        if (!(error instanceof FileRefusal)) throw error
        throw new ToolError(
          'failed',
          `The file '${path.slice(0, 200)}' of the skill '${name}' cannot be read: ${error.message}`,
        )
      }
    },
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
    throw invalidSkillError(
      dir,
      isMissing ? 'there is no such folder.' : 'it is no folder that can be read.',
      {
        cause: error,
      },
    )
  }
  return names
    .filter((name) => !name.startsWith('.') && existsSync(join(base, name, fileName)))
    .sort()
    .map((name) => {
      const folder = join(base, name)
      if (!isInside(base, realpathSync(folder)))
        throw invalidSkillError(
          folder,
          `it is a link that leads out of ${base}. Name its own folder in dirs.`,
        )
      return folder
    })
}

/** @throws {ConfigError} `invalid_skill` */
function readSkill(folder: string): LoadedSkill {
  const where = join(folder, fileName)
  const text = readSkillText(folder, where)
  const { fields, body } = splitFrontMatter(where, text)
  // A skill that is to narrow the tools must not widen them by a slip of the pen.
  const slip = Object.keys(fields).find((key) => key !== narrowingKey && toLetters(key) === 'allowedtools')
  if (slip !== undefined)
    throw invalidSkillError(where, `its front matter has '${slip.slice(0, 80)}': write ${narrowingKey}.`)
  const { 'allowed-tools': allowedTools, ...others } = fields
  const info = checkSkill(where, { ...others, allowedTools })
  return { info: { ...info, hash: sha256(text).slice(0, 16) }, body }
}

function readSkillText(folder: string, where: string): string {
  try {
    return readContainedText(folder, fileName, maxSkillBytes)
  } catch (error) {
    if (!(error instanceof FileRefusal)) throw error
    throw invalidSkillError(where, error.message, { cause: error })
  }
}
