/** Instructions that the model loads on demand, from skills in folders or from a list. */
export type { AgentSkills, SkillInfo } from '../core/tools/tool-outcomes.js'
export type { ListedSkillsOptions } from './create-skills.js'
export { instructionsFrom, type InstructionsFromOptions } from './node/instructions-from.js'
export type { SkillFoldersOptions } from './node/skill-folders.js'
export { skills } from './node/skill-folders.js'
