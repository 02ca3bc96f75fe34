import { type ArgumentRule, optionsRule, expectArgument } from '../../core/base/values.js'
import { expectKnownOptions } from '../../core/config/other-names.js'
import type { AgentSkills } from '../../core/tools/tool-outcomes.js'
import { createListedSkills, type ListedSkillsOptions } from '../listed-skills.js'
import { createFolderSkills, type SkillFoldersOptions } from './skill-folders.js'

const dirsRule: ArgumentRule = {
  is: (value) => Array.isArray(value) && value.every((dir) => typeof dir === 'string' && dir !== ''),
  phrase: "a list of folders, such as ['./skills']",
}
const allowRule: ArgumentRule = {
  is: (value) =>
    value === undefined ||
    typeof value === 'function' ||
    (Array.isArray(value) && value.every((name) => typeof name === 'string')),
  phrase: 'a list of names, or a function',
}

/**
 * The skills of an agent, for `createAgent({ skills })`. From folders in the Agent Skills format (Node, with the package `yaml`), or
 * from a list whose instructions `load` returns (everywhere).
 *
 * @example
 * const fromFolders = () => skills({ dirs: ['./skills'], allow: ['review'] })
 * const fromList = skills({
 *   list: [{ name: 'review', description: 'How to review a change.', allowedTools: ['read'] }],
 *   load: () => 'Read the whole change before you say anything.',
 * })
 * @throws {ConfigError} `invalid_skill` for a file that is no skill, is too large or lies outside its folder, `duplicate_skill`
 * @throws {UsageError} `invalid_argument`, `invalid_option`
 * @throws {StatewrightError} `missing_package`
 */
export function skills(options: SkillFoldersOptions | ListedSkillsOptions): AgentSkills {
  expectArgument('skills(options)', options ?? null, optionsRule)
  if ('list' in options || 'load' in options) {
    expectKnownOptions('skills', options, ['list', 'load', 'readFile'])
    return createListedSkills(options as ListedSkillsOptions)
  }
  expectKnownOptions('skills', options, ['dirs', 'allow'])
  expectArgument('skills({ dirs })', options.dirs, dirsRule)
  expectArgument('skills({ allow })', options.allow, allowRule)
  return createFolderSkills(options)
}
