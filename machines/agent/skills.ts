import { type Message, readHandoff } from './messages.js'

/** What the call of a skill's tool changes: a skill is loaded, or its instructions no longer hold. */
export type SkillChange =
  | {
      action: 'load'
      name: string
      /** Of the file that it was read from: 16 hexadecimal digits. */
      hash: string
      /** Only these tools, and those of skills, may be called while it is active. Absent: it narrows nothing. */
      allowedTools?: string[]
    }
  | { action: 'unload'; name: string }

/** A skill whose instructions hold. */
export interface ActiveSkill {
  name: string
  hash: string
  allowedTools?: string[]
  /** The message with its instructions: the result of the call that loaded it. */
  messageId: string
}

/**
 * The skills that a transcript leaves active. Their notes stand on the results of the calls that changed them. A batch that hands the
 * conversation to another agent leaves none: they are the former agent's.
 */
export function findActiveSkills(messages: readonly Message[]): ActiveSkill[] {
  let active: ActiveSkill[] = []
  let isHandedOver = false
  for (const { role, id, data } of messages) {
    if (role !== 'tool') isHandedOver = false
    if (role !== 'tool' || !data) continue
    isHandedOver ||= readHandoff(data['handoff']) !== undefined
    const change = readSkillChange(data['skill'])
    if (isHandedOver) active = []
    else if (change) active = changeSkills(active, change, id)
  }
  return active
}

/** The skills after a change. */
export function changeSkills(
  active: readonly ActiveSkill[],
  change: SkillChange,
  messageId: string,
): ActiveSkill[] {
  const others = active.filter(({ name }) => name !== change.name)
  if (change.action === 'unload') return others
  const { action: _action, ...skill } = change
  return [...others, { ...skill, messageId }]
}

/** What changes the skills, from the notes of a message; undefined for anything else that stands there. */
function readSkillChange(note: unknown): SkillChange | undefined {
  const { action, name, hash, allowedTools } = (note ?? {}) as Partial<Record<string, unknown>>
  if (typeof name !== 'string') return undefined
  if (action === 'unload') return { action, name }
  if (action !== 'load' || typeof hash !== 'string') return undefined
  if (allowedTools === undefined) return { action, name, hash }
  // What cannot be read allows nothing.
  const allowed = Array.isArray(allowedTools) ? allowedTools.filter((tool) => typeof tool === 'string') : []
  return { action, name, hash, allowedTools: allowed }
}
