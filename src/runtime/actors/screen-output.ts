import { fromPromise } from 'xstate'
import type { Screening } from '../../../machines/agent/screening.js'
import { agentOf } from '../live.js'
import type { Parts } from '../parts.js'
import { shieldCall } from '../shield-call.js'
import { screen } from '../shielding.js'

/** Shows the shields an answer as a whole; what of it was held back is shown when they have cleared it. */
export const screenOutput = (parts: Parts) =>
  fromPromise<Screening>(async ({ signal, self }) => {
    const { live, context } = agentOf(self)
    await live.flushed()
    signal.throwIfAborted()
    const stepId = `${context.held?.stepId ?? context.runId}.output`
    live.steps.start(
      self,
      shieldCall({ stepId, point: 'output' }, (screening: Screening) => [screening]),
    )
    signal.throwIfAborted()
    const screening = await screen(parts, { live, context, signal }, 'output', context.held?.text ?? '')
    signal.throwIfAborted()
    live.showCleared(screening.action === 'block' ? '' : screening.content)
    return screening
  })
