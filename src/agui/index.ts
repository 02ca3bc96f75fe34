/** Runs for pages that use AG-UI, such as CopilotKit and assistant-ui. */
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
export { toAGUI, type AGUIOptions, type AGUIRunInput } from './agui-stream.js'
