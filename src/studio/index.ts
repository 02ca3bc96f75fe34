/** A local studio for sessions and runs, and Stately's inspector. Requires Node.js. */
export { type LocalInspector, type LocalInspectorOptions, startInspector } from './inspector.js'
export { startStudio, type Studio, type StudioOptions } from './start-studio.js'
export type { StatelyOptions } from './studio-page.js'
