import type { Call, Json, Run } from '../../../spec/run.js'

/** A skill is loaded, or taken back; or the conversation goes on under another agent, which has loaded none. */
interface SkillChange {
  action: string
  name: string
  allowedTools?: string[]
}

/** What is known of skills: those that are loaded, and what the transcript has of their changes. */
export interface Skills {
  active: { name: string; allowedTools?: string[] | undefined }[]
  history: SkillChange[]
  /** How many of those changes are older than the last answer. */
  before: number
  /** By calls of the last answer: what they change if they succeed. */
  pending: Record<string, SkillChange>
}

const fold = (history: readonly SkillChange[]): Skills['active'] =>
  history.reduce<Skills['active']>((active, { action, name, allowedTools }) => {
    if (action === 'hand over') return []
    const others = active.filter((one) => one.name !== name)
    return action === 'unload' ? others : [...others, { name, allowedTools }]
  }, [])

const toSkills = (history: SkillChange[]): Skills => ({
  active: fold(history),
  history,
  before: history.length,
  pending: {},
})

const handover: SkillChange = { action: 'hand over', name: '' }

/** The changes that the results of a transcript note. A handoff is the last of its batch. */
function listChanges(messages: Json[]): SkillChange[] {
  const changes: SkillChange[] = []
  let isHandedOver = false
  const endBatch = (): void => {
    if (isHandedOver) changes.push(handover)
    isHandedOver = false
  }
  for (const { role, data } of messages) {
    if (role !== 'tool') endBatch()
    else if (data?.handoff) isHandedOver = true
    if (role === 'tool' && data?.skill) changes.push(data.skill)
  }
  endBatch()
  return changes
}

export const readSkills = (messages: Json[]): Skills => toSkills(listChanges(messages))

/** Those of a snapshot. */
export function readStoredSkills({ skills = [], messages, calls, batchAt }: Json): Skills {
  const pending = calls.flatMap(({ id, skill }: Json) => (skill ? [[id, skill]] : []))
  return {
    active: skills.map(({ name, allowedTools }: Json) => ({ name, allowedTools })),
    history: listChanges(messages),
    before: listChanges(calls.length > 0 ? messages.slice(0, batchAt + 1) : messages).length,
    pending: Object.fromEntries(pending),
  }
}

/** A branch has a part of the transcript, and so some of the changes from the beginning on. */
export const listBranches = ({ history }: Skills): Skills[] =>
  Array.from({ length: history.length + 1 }, (_, count) => toSkills(history.slice(0, count)))

/** With the changes of the calls that have succeeded. */
export function settleSkills(
  { history, before, pending }: Skills,
  calls: readonly Call[],
  isHandedOver: boolean,
): Skills {
  const made = calls.flatMap(({ id, done, failed, unscreened }) => {
    // A provider may call a call `__proto__`.
    const change = Object.hasOwn(pending, id) ? pending[id] : undefined
    return change && done && !failed && !unscreened ? [change] : []
  })
  const all = [...history.slice(0, before), ...made, ...(isHandedOver ? [handover] : [])]
  return { active: fold(all), history: all, before, pending }
}

/**
 * Calls of tools that the plan of the step leaves out, or a loaded skill does not allow, are refused; skills allow their own tools. Of
 * the handoffs of one answer, the first counts.
 */
export function forbidCalls(
  { active }: Skills,
  { calls, setup, plan, steps }: Run,
  refusal: Partial<Call>,
): Call[] {
  const isLeftOut = ({ name }: Call): boolean => plan?.step === steps && plan?.tools?.includes(name) === false
  const isForbidden = ({ name }: Call): boolean =>
    !setup.tools[name]?.skill && active.some(({ allowedTools }) => allowedTools?.includes(name) === false)
  const handoffs = calls.filter(({ name }) => setup.tools[name]?.handoff)
  return calls.map((call) =>
    handoffs.indexOf(call) > 0 || isLeftOut(call) || isForbidden(call)
      ? { ...call, ...refusal, failed: !call.unloaded }
      : call,
  )
}
