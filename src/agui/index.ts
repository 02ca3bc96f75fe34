/** Runs for pages that speak AG-UI: CopilotKit, assistant-ui and others. */
export type { FileIds } from '../web/page-files.js'
export { aguiHandler, type AGUIHandlerOptions } from './agui-handler.js'
export { toAGUIEnds, toAGUIMessages } from './agui-messages.js'
export type {
  AGUICall,
  AGUIEnd,
  AGUIEvent,
  AGUIInterrupt,
  AGUIMessage,
  AGUIOutcome,
  AGUIPart,
  AGUISource,
  AGUIUsage,
} from './protocol.js'
export { toAGUI, type AGUIOptions, type AGUIRunInput } from './to-agui.js'
