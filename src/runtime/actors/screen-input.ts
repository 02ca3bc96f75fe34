import { fromPromise } from 'xstate'
import type { UserMessage } from '../../../machines/agent/messages.js'
import type { InputScreening } from '../../../machines/agent/screening.js'
import { stepIdOf } from '../../../machines/agent/step-id.js'
import { unscreenedInput } from '../../../machines/agent/unscreened.js'
import { agentOf } from '../live.js'
import type { Parts } from '../parts.js'
import { screen } from '../shielding.js'
import { shieldCall } from '../shield-call.js'

/** Shows the shields what the user has said, each text by itself. */
export const screenInput = (parts: Parts) =>
  fromPromise<InputScreening[]>(async ({ signal, self }) => {
    const { live, context } = agentOf(self)
    await live.flushed()
    signal.throwIfAborted()
    const texts = unscreenedInput(context).flatMap(textsOf)
    const stepId = `${stepIdOf(context)}.input`
    live.steps.start(
      self,
      shieldCall({ stepId, point: 'input' }, (screenings: InputScreening[]) => screenings),
    )
    signal.throwIfAborted()
    return Promise.all(
      texts.map(async ({ text, ...where }) => ({
        ...(await screen(parts, { live, context, signal }, 'input', text)),
        ...where,
      })),
    )
  })

interface Text {
  index: number
  part: number | null
  text: string
}

function textsOf({ content }: UserMessage, index: number): Text[] {
  if (typeof content === 'string') return [{ index, part: null, text: content }]
  const texts = content.flatMap((one, part) => (one.type === 'text' ? [{ index, part, text: one.text }] : []))
  // Each message is shown, one without words included: what nobody has looked at counts as blocked.
  return texts.length > 0 ? texts : [{ index, part: null, text: '' }]
}
