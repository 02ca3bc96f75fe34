import { type Message, readHandoff } from './messages.js'

export type SkillChange =
  | {
      action: 'load'
      name: string
      /** Hash of the skill file, as 16 hexadecimal digits. */
      hash: string
      /** The only tools allowed while the skill is active, besides the skill tools. If absent, all are allowed. */
      allowedTools?: string[]
    }
  | { action: 'unload'; name: string }

export interface ActiveSkill {
  name: string
  hash: string
  allowedTools?: string[]
  /** The message with the skill's instructions. The message is the result of the call that loaded the skill. */
  messageId: string
}

/** According to the notes on results. A handoff deactivates all, because they belong to the previous agent. */
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

function readSkillChange(note: unknown): SkillChange | undefined {
  const { action, name, hash, allowedTools } = (note ?? {}) as Partial<Record<string, unknown>>
  if (typeof name !== 'string') return undefined
  if (action === 'unload') return { action, name }
  if (action !== 'load' || typeof hash !== 'string') return undefined
  if (allowedTools === undefined) return { action, name, hash }
  // An unreadable list allows no tools.
  const allowed = Array.isArray(allowedTools) ? allowedTools.filter((tool) => typeof tool === 'string') : []
  return { action, name, hash, allowedTools: allowed }
}
