// The positive control, as a peer.
import { openConversation } from '../control/loop.mjs'

export const open = ({ baseURL, tools = [], limits, saved }) =>
  openConversation({ baseURL, tools, limits, saved })
