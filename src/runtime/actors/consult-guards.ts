import { fromPromise } from 'xstate'
import type { Consultation } from '../../../machines/agent/consultation.js'
import { consult } from '../../user-guards/consult.js'
import { callsFact, resultsFact } from '../../user-guards/facts.js'
import { agentOf } from '../live.js'
import type { Parts } from '../parts.js'

/** Asks the user's own guards about the batch at hand. What they throw or forget to return is plain data already. */
export const consultGuards = (parts: Parts) =>
  fromPromise<Consultation, { on: 'calls' | 'results' }>(async ({ input, signal, self }) => {
    const { live, context } = agentOf(self)
    await live.flushed()
    signal.throwIfAborted()
    const fact = input.on === 'calls' ? callsFact(context) : resultsFact(context)
    const { clock, binding } = live
    return consult(parts.guards, context.guardrails.user, fact, { signal, clock, context: binding.context })
  })
