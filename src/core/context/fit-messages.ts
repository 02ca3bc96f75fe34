import type { Fit } from '../../../machines/agent/fit.js'
import type { ContentPart, Message, UserMessage } from '../../../machines/agent/messages.js'
import { isValidGap, isInGap } from './gap.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ActiveSkill } from '../../../machines/agent/skills.js'

/** Merges the user messages around the gap, because two in a row may be rejected. Never throws. */
export function fitMessages(messages: readonly Message[], fit: Fit | null): readonly Message[] {
  if (fit === null || !isValidGap(messages, fit)) return messages
  const { head, from, keep = [] } = fit
  const seamStart = messages.slice(0, head).findLastIndex((message) => !isUser(message)) + 1
  const seam = [
    ...messages.slice(seamStart, head),
    ...keep.map((index) => messages[index]),
    messages[from],
  ].filter(isUser)
  const merged = getMergedSeam(fit, seam, head - seamStart, messages[head]?.createdAt ?? 0)
  return [
    ...messages.slice(0, seamStart),
    ...(merged === null ? [] : [merged]),
    ...messages.slice(isUser(messages[from]) ? from + 1 : from),
  ]
}

const mergedByFit = new WeakMap<Fit, { seam: readonly UserMessage[]; merged: UserMessage | null }>()

/** Returns the same object for the same fit, because token counts and translations are cached by identity. */
function getMergedSeam(fit: Fit, seam: readonly UserMessage[], noteAt: number, at: number) {
  const known = mergedByFit.get(fit)
  if (known?.seam.length === seam.length && known.seam.every((message, i) => message === seam[i]))
    return known.merged
  const note = { role: 'user', id: 'context-note', createdAt: at, internal: true } as const
  const added = fit.note === null ? [] : [{ ...note, content: fit.note }]
  const merged = mergeUserMessages([...seam.slice(0, noteAt), ...added, ...seam.slice(noteAt)])
  mergedByFit.set(fit, { seam, merged })
  return merged
}

function mergeUserMessages(messages: readonly UserMessage[]): UserMessage | null {
  const last = messages.at(-1)
  if (last === undefined || messages.length === 1) return last ?? null
  const contents = messages.map(({ content }) => content)
  const texts = contents.filter((content) => typeof content === 'string')
  const isText = texts.length === contents.length
  return { ...last, content: isText ? texts.filter(Boolean).join('\n\n') : contents.flatMap(toParts) }
}

function toParts(content: UserMessage['content']): ContentPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function isUser(message: Message | undefined): message is UserMessage {
  return message?.role === 'user'
}

const attachedByFit = new WeakMap<Fit, { skills: readonly ActiveSkill[]; fit: Fit }>()

/** Appends the instructions of active skills that the fit omits. Cached until fit or skills change. */
export function attachSkills(
  { messages, skills }: Pick<AgentContext, 'messages' | 'skills'>,
  fit: Fit | null,
): Fit | null {
  if (fit === null || skills.length === 0 || !isValidGap(messages, fit)) return fit
  const known = attachedByFit.get(fit)
  if (known?.skills === skills) return known.fit
  const texts = skills.flatMap(({ name, messageId }) => {
    // The screened instructions.
    const at = messages.findLastIndex(({ id }) => id === messageId)
    const message = messages[at]
    if (message?.role !== 'tool' || !isInGap(fit, at)) return []
    return [`[You have loaded the skill "${name}". Its instructions still apply:]\n${message.content}`]
  })
  const note = [...(fit.note === null ? [] : [fit.note]), ...texts].join('\n\n')
  const attached = texts.length === 0 ? fit : { ...fit, note }
  attachedByFit.set(fit, { skills, fit: attached })
  return attached
}
