import { act } from '../act.js'
import { timeOf } from '../events.js'
import type { AssistantMessage } from '../messages.js'
import { messageId } from './transcript.js'

/** A block is answered with the shield's own words; what was blocked is not repeated. */
export const keepShieldMessage = act((context, event) => {
  const output = 'output' in event ? (event.output as { message?: unknown } | null) : null
  const content = typeof output?.message === 'string' ? output.message : 'A shield refused the content.'
  const message: AssistantMessage = {
    role: 'assistant',
    id: messageId(context.numbered + 1),
    createdAt: timeOf(event),
    content,
    data: { reason: 'shield' },
  }
  return {
    messages: [...context.messages, message],
    numbered: context.numbered + 1,
    error: { code: 'shield', message: content, recoverable: false },
  }
})
