import { expectArgument, optionsRule } from '../core/base/values.js'
import { optionError } from '../core/base/errors.js'
import type { AgentSkills } from '../core/tools/tool-outcomes.js'
import { createListedSkills, type ListedSkillsOptions } from './create-skills.js'

/** Like `skills` on Node, but for lists only. */
export function skills(options: ListedSkillsOptions): AgentSkills {
  expectArgument('skills(options)', options ?? null, optionsRule)
  if ('dirs' in options)
    throw optionError('Folders are not available here. Pass skills({ list, load }).', 'dirs')
  return createListedSkills(options)
}

/** Files are not available on this platform. */
export function instructionsFrom(): never {
  throw optionError('Files are not available here. Pass instructions as a string.', 'instructionsFrom')
}
