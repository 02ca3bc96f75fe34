// The control, a minimal loop that passes every case. `mistake` adds the one mistake that a case must find.
import { openConversation } from './loop.mjs'

export { openStored } from './stored.mjs'

export const open = ({ baseURL, tools, limits, saved, mistake }) =>
  openConversation({ baseURL, tools, limits, saved, mistake })

/** Without options: the loop cases pass no limits. */
export const variants = { defaults: {} }
