// The negative controls, as a peer: the loop of the suite with the mistake that each case names.
import { openConversation } from '../control/loop.mjs'

export const open = ({ baseURL, tools = [], limits, saved, mistake }) =>
  openConversation({ baseURL, tools, limits, saved, mistake })
