import type { SkillChange } from '../../../machines/agent/skills.js'
import type { Tool } from './tool.js'

/** A skill of an agent, as its index has it. */
export interface SkillInfo {
  /** 1 to 64 small letters, digits and hyphens. */
  readonly name: string
  /** What it is for and when to load it, for the model: up to 1,024 characters. */
  readonly description: string
  /** Only these tools may be called while it is loaded. Absent: it narrows nothing. */
  readonly allowedTools?: readonly string[]
  readonly license?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** Changes with the skill: 16 hexadecimal digits. */
  readonly hash: string
}

/**
 * The skills of an agent: what `skills()` of `statewright/skills` returns.
 *
 * @example
 * const reviewing: AgentSkills = skills({
 *   list: [{ name: 'review', description: 'How to review a change.' }],
 *   load: () => 'Read the whole change before you say anything.',
 * })
 * createAgent({ model, skills: reviewing })
 */
export interface AgentSkills {
  /** All of them, sorted by name. */
  readonly list: readonly SkillInfo[]
  /** The index that goes into the instructions. */
  readonly instructions: string
  /** `load_skill`, `read_skill_file` and `unload_skill`. */
  readonly tools: readonly Tool[]
}

/** What a tool of skills returns: what the model reads, and what changes. */
export class SkillOutcome {
  readonly text: string
  readonly change: SkillChange

  constructor(text: string, change: SkillChange) {
    this.text = text
    this.change = change
  }
}
