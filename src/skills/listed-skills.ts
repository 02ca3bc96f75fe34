import { sha256 } from '../../guards/lib/sha256.js'
import { type ArgumentRule, expectArgument, functionRule } from '../core/base/values.js'
import type { AgentSkills, SkillInfo } from '../core/tools/tool-outcomes.js'
import { checkSkill, sortSkills } from './check-skill.js'
import { createSkills } from './create-skills.js'
import { invalidSkillError } from './skill-error.js'

/** Skills that a program has anywhere: in a bundle, in a database, behind a URL. */
export interface ListedSkillsOptions {
  /** The skills, with what the index says of them. `hash`, where it is given, has to change with the instructions. */
  list: readonly (Omit<SkillInfo, 'hash'> & { readonly hash?: string })[]
  /** Returns the instructions of a skill, when the model asks for them. */
  load: (name: string) => string | Promise<string>
  /** Returns a file of a skill. `path` is the model's own text: check it. Default: skills have no files. */
  readFile?: (name: string, path: string) => string | Promise<string>
}

const listPhrase: ArgumentRule = {
  is: Array.isArray,
  phrase: "a list, such as [{ name: 'review', description: '…' }]",
}

export function createListedSkills({ list, load, readFile }: ListedSkillsOptions): AgentSkills {
  expectArgument('skills({ list })', list, listPhrase)
  expectArgument(
    'skills({ load })',
    load,
    functionRule('a function that returns the instructions of a skill'),
  )
  if (readFile !== undefined)
    expectArgument('skills({ readFile })', readFile, functionRule('a function that returns a file'))
  const infos = sortSkills(
    list.map((given, i) => {
      const where = `list[${i}]`
      if (typeof given !== 'object' || given === null)
        throw invalidSkillError(where, 'it must be an object with name and description.')
      const { hash } = given
      const info = checkSkill(where, { ...given })
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
      if (typeof body !== 'string') throw new TypeError(`load('${name}') returned no text.`)
      return { info: byName.get(name) as SkillInfo, body }
    },
    readFile,
  })
}
