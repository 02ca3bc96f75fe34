import type { AgentContext } from '../../../machines/agent/context.js'
import type { Fit } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { ActiveSkill } from '../../../machines/agent/skills.js'
import { isInGap, isValidGap } from './gap.js'

type Attached = Pick<AgentContext, 'messages' | 'skills'>

const attachedByFit = new WeakMap<Fit, { skills: readonly ActiveSkill[]; fit: Fit }>()

/**
 * Appends the verbatim instructions of active skills to the note of the fit if the fit omits these instructions.
 * Returns the same object until the fit or the skills change.
 */
export function attachSkills({ messages, skills }: Attached, fit: Fit | null): Fit | null {
  if (fit === null || skills.length === 0 || !isValidGap(messages, fit)) return fit
  const known = attachedByFit.get(fit)
  if (known?.skills === skills) return known.fit
  const texts = skills.flatMap(({ name, messageId }) => {
    const text = findLeftOut(messages, fit, messageId)
    return text === null
      ? []
      : [`[You have loaded the skill "${name}". Its instructions still apply:]\n${text}`]
  })
  const attached =
    texts.length === 0
      ? fit
      : { ...fit, note: [...(fit.note === null ? [] : [fit.note]), ...texts].join('\n\n') }
  attachedByFit.set(fit, { skills, fit: attached })
  return attached
}

/** The screened instructions of a skill. Null if requests still contain them. */
function findLeftOut(messages: readonly Message[], fit: Fit, messageId: string): string | null {
  const at = messages.findLastIndex(({ id }) => id === messageId)
  const message = messages[at]
  return message?.role === 'tool' && isInGap(fit, at) ? message.content : null
}
