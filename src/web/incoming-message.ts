import type { UserInputMessage } from '../core/sessions/user-input.js'

/** A user's message from a page. */
export interface IncomingMessage {
  content: UserInputMessage['content']
  /** The page's own id of the message: a message that is sent twice starts one run. */
  clientId: string | undefined
  /** The branch that the page shows. Absent: the one that the session is on. */
  branch?: number | undefined
}

export function toInputMessage({ content, clientId }: IncomingMessage): UserInputMessage {
  return { content, ...(clientId !== undefined && { clientId }) }
}

/** Whether a message is text alone. */
export function isText({ content }: IncomingMessage): boolean {
  return typeof content === 'string' || content.every(({ type }) => type === 'text')
}
