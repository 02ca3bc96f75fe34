/** A local page over sessions and runs, and Stately's inspector in another. For Node alone. */
export { type LocalInspector, type LocalInspectorOptions, startInspector } from './inspector.js'
export { startStudio, type Studio, type StudioOptions } from './start-studio.js'
export type { StatelyOptions } from './studio-page.js'
