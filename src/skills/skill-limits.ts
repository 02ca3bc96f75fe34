/** Characters of the index in the instructions. */
export const maxIndexChars = 8_000
/** Characters of a skill's instructions. */
export const maxBodyChars = 100_000
/** Bytes of a SKILL.md. */
export const maxSkillBytes = 500_000
/** Characters of the front matter of a SKILL.md. */
export const maxFrontMatterChars = 20_000
/** Characters of a description, by the Agent Skills format. */
export const maxDescriptionChars = 1_024
/** Bytes of a file in a skill's folder. */
export const maxFileBytes = 1_000_000
/** Skills of one agent. */
export const maxSkills = 500
