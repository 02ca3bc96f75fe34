/** The machine holds nothing else. */
export type { Json, JsonObject } from '../../guards/lib/json.js'
