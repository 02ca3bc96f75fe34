import type { Clock } from '../base/clock.js'
import type { QueuedMessage } from '../sessions/inbox/queued-message.js'
import { type InputConversation, readConversation } from '../sessions/input-history.js'
import type { RunSessionOptions } from './drive-options.js'

/** What a run begins with. */
export type RunBeginning =
  | { input: NonNullable<RunSessionOptions['input']>; queued?: undefined }
  | { queued: QueuedMessage }

export async function readBeginning(beginning: RunBeginning, clock: Clock): Promise<InputConversation> {
  if (beginning.queued) return { history: [], newMessages: beginning.queued.messages }
  const { input } = beginning
  return readConversation(typeof input === 'function' ? await input() : input, clock.now())
}
