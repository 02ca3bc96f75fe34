import type { ContentPart, UserMessage } from '../../../machines/agent/messages.js'
import type { InputScreening, Screening } from '../../../machines/agent/screening.js'
import { getStepId } from '../../../machines/agent/step-id.js'
import { listUnclearedInput } from '../../../machines/agent/uncleared-input.js'
import type { EffectScope } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { getReadableText } from '../shields/readable-part.js'
import { screenText } from './screen-text.js'
import { createShieldStep } from './shield-step.js'

/**
 * Shows the shields what the user has said: each part of a message, and its texts as the model reads them, together.
 */
export async function screenInput(
  parts: AgentParts,
  { signal, self, runtime, context }: EffectScope,
): Promise<InputScreening[]> {
  await runtime.waitUntilDurable()
  signal.throwIfAborted()
  const messages = listUnclearedInput(context)
  const stepId = `${getStepId(context)}.input`
  runtime.steps.start(
    self,
    createShieldStep({ stepId, point: 'input' }, (screenings: InputScreening[]) => screenings),
  )
  signal.throwIfAborted()
  const look: ScreenText = (text) => screenText(parts, { runtime, context, signal }, 'input', text)
  const looks = messages.map(async ({ content }, index) =>
    (await screenContent(content, look)).map((screening) => ({ ...screening, index })),
  )
  return (await Promise.all(looks)).flat()
}

type ScreenText = (text: string) => Promise<Screening>
type PartScreening = Omit<InputScreening, 'index'>

/** What shields say of each part of a content, and of its texts together. */
export async function screenContent(
  content: UserMessage['content'],
  look: ScreenText,
): Promise<PartScreening[]> {
  if (typeof content === 'string') return [{ ...(await look(content)), part: null }]
  const looks = content.map(async (one, part) => {
    const text = getReadableText(one)
    return text === '' ? [] : [{ ...(await look(text)), part }]
  })
  const screenings = (await Promise.all(looks)).flat()
  // A message without text is screened, too: a message without a screening counts as blocked.
  if (screenings.length === 0) return [{ ...(await look('')), part: null }]
  const seen = screenings.some(({ action }) => action === 'block')
    ? screenings
    : await screenJoinedTexts(screenings, content, look)
  // A refused message is dropped whole, harmless parts included.
  return seen.some(({ action }) => action === 'block') ? seen.map((one) => ({ ...one, content: '' })) : seen
}

/** Texts that are harmless alone can be forbidden together: screens them joined, directly and with a line break. */
async function screenJoinedTexts(
  screenings: PartScreening[],
  content: readonly ContentPart[],
  look: ScreenText,
): Promise<PartScreening[]> {
  const texts = screenings.filter(({ part }) => part !== null && content[part]?.type === 'text')
  const [first, ...others] = texts
  if (first === undefined || others.length === 0) return screenings
  for (const between of ['', '\n']) {
    // oxlint-disable-next-line no-await-in-loop -- the second look is not needed where the first finds something
    const joined = await look(texts.map((text) => text.content).join(between))
    if (joined.action === 'block') return [...screenings, { ...joined, part: null }]
    if (joined.action === 'redact') {
      const merged = { ...joined, findings: [...first.findings, ...joined.findings], part: first.part }
      // The finding spans them, so they become one text.
      const emptied = others.map((text) => ({ ...text, action: 'redact' as const, content: '' }))
      return [...screenings.filter((one) => !texts.includes(one)), merged, ...emptied]
    }
  }
  return screenings
}
