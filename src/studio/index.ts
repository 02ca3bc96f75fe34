/** A local page over sessions and runs. For Node alone. */
export { startStudio, type Studio, type StudioOptions } from './start-studio.js'
